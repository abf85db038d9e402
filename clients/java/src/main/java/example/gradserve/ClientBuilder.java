package example.gradserve;

import java.net.http.HttpClient;
import java.time.Duration;

/** Creates clients. */
public final class ClientBuilder {
    /** The environment variable with the default API key. */
    private static final String KEY_VARIABLE = "GRADSERVE_API_KEY";
    /** The maximum length of an array. */
    private static final long MOST_OF_BODY = Integer.MAX_VALUE - 8;

    private final String url;
    private String key = System.getenv().getOrDefault(KEY_VARIABLE, "");
    private Duration timeout = Duration.ofMinutes(1);
    private int retries = 2;
    private boolean idempotency = true;
    private long maxResponseBytes = 256 << 20;
    private HttpClient http;
    private Surroundings surroundings = new Surroundings() {};

    ClientBuilder(String url) {
        this.url = url;
    }

    /**
     * Sets the API key. The default is the environment variable {@code GRADSERVE_API_KEY}. Exceptions never contain the
     * key.
     *
     * @param key the key
     * @return this builder
     */
    public ClientBuilder apiKey(String key) {
        this.key = key;
        return this;
    }

    /**
     * Sets the time limit for all attempts of a call together.
     *
     * @param limit the limit, by default a minute; {@link Duration#ZERO} means no limit
     * @return this builder
     */
    public ClientBuilder timeout(Duration limit) {
        this.timeout = limit;
        return this;
    }

    /**
     * Sets the maximum number of retries of a call.
     *
     * @param most the number, by default 2
     * @return this builder
     */
    public ClientBuilder retries(int most) {
        this.retries = Math.max(0, most);
        return this;
    }

    /**
     * Sets whether calls that store something send an Idempotency-Key. Without one they are not retried.
     *
     * @param makesKeys true by default
     * @return this builder
     */
    public ClientBuilder idempotency(boolean makesKeys) {
        this.idempotency = makesKeys;
        return this;
    }

    /**
     * Sets the maximum size of a response.
     *
     * @param most the size in bytes, by default 256 MiB
     * @return this builder
     */
    public ClientBuilder maxResponseBytes(long most) {
        this.maxResponseBytes = Math.min(most, MOST_OF_BODY);
        return this;
    }

    /**
     * Replaces the HTTP client, for example to use a proxy or an executor.
     *
     * @param http a client that does not follow redirects
     * @return this builder
     */
    public ClientBuilder httpClient(HttpClient http) {
        this.http = http;
        return this;
    }

    /**
     * Replaces clock, randomness and key generation, for tests.
     *
     * @param surroundings by default those of the machine
     * @return this builder
     */
    public ClientBuilder surroundings(Surroundings surroundings) {
        this.surroundings = surroundings;
        return this;
    }

    /**
     * Creates the client.
     *
     * @return a new client
     * @throws InputException if the URL or the key is invalid
     */
    public Client build() {
        return new Client(new AsyncClient(settings()));
    }

    Settings settings() {
        HttpClient sending = http != null ? http : usualHttp();
        Transport transport = new Transport(url, key, maxResponseBytes, sending);
        return new Settings(transport, timeout, retries, idempotency, surroundings);
    }

    /** Uses HTTP/1.1, as the server does, and does not ask for an upgrade. */
    private static HttpClient usualHttp() {
        return HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofSeconds(10))
            .build();
    }
}
