package example.gradserve;

import java.net.http.HttpClient;
import java.time.Duration;

/** Makes clients. */
public final class ClientBuilder {
    /** Has the key, where the builder is given none. */
    private static final String KEY_VARIABLE = "GRADSERVE_API_KEY";
    /** As much as an array can hold. */
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
     * The key, which else is that of the environment, {@code GRADSERVE_API_KEY}. It is in no exception.
     *
     * @param key as it was given out
     * @return this builder
     */
    public ClientBuilder apiKey(String key) {
        this.key = key;
        return this;
    }

    /**
     * How long a call may take, over all of its tries.
     *
     * @param limit a minute unless stated; {@link Duration#ZERO} is without end
     * @return this builder
     */
    public ClientBuilder timeout(Duration limit) {
        this.timeout = limit;
        return this;
    }

    /**
     * How often a call is repeated at most.
     *
     * @param most twice unless stated
     * @return this builder
     */
    public ClientBuilder retries(int most) {
        this.retries = Math.max(0, most);
        return this;
    }

    /**
     * Whether calls that keep something get an Idempotency-Key, without which they are not repeated.
     *
     * @param makesKeys true unless stated
     * @return this builder
     */
    public ClientBuilder idempotency(boolean makesKeys) {
        this.idempotency = makesKeys;
        return this;
    }

    /**
     * How long an answer may be to be read.
     *
     * @param most 256 MiB unless stated
     * @return this builder
     */
    public ClientBuilder maxResponseBytes(long most) {
        this.maxResponseBytes = Math.min(most, MOST_OF_BODY);
        return this;
    }

    /**
     * What sends requests, in place of one of the client's own: with a proxy, for example, or an executor.
     *
     * @param http one that follows no redirects
     * @return this builder
     */
    public ClientBuilder httpClient(HttpClient http) {
        this.http = http;
        return this;
    }

    /**
     * Clock, chance and keys, which tests hand in.
     *
     * @param surroundings those of the machine unless stated
     * @return this builder
     */
    public ClientBuilder surroundings(Surroundings surroundings) {
        this.surroundings = surroundings;
        return this;
    }

    /**
     * The client.
     *
     * @return a new one
     * @throws InputException for what cannot be a URL, or a key
     */
    public Client build() {
        return new Client(new AsyncClient(settings()));
    }

    Settings settings() {
        HttpClient sending = http != null ? http : usualHttp();
        Transport transport = new Transport(url, key, maxResponseBytes, sending);
        return new Settings(transport, timeout, retries, idempotency, surroundings);
    }

    /** Speaks HTTP/1.1 as the server does, and asks it for no other. */
    private static HttpClient usualHttp() {
        return HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(Duration.ofSeconds(10))
            .build();
    }
}
