package example.gradserve;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/** The connection to a server. */
final class Transport {
    private final HttpClient http;
    private final String base;
    private final String key;
    private final long most;

    Transport(String url, String key, long most, HttpClient http) {
        this.http = http;
        this.base = checkedUrl(url);
        this.key = key;
        this.most = most;
        if (!key.chars().allMatch(sign -> ' ' < sign && sign <= '~')) {
            throw new InputException("the API key contains characters that HTTP headers cannot contain");
        }
    }

    /** Returns the URL without a trailing slash. Errors do not quote it, because it may contain a password. */
    private static String checkedUrl(String url) {
        URI address;
        try {
            address = URI.create(url);
        } catch (IllegalArgumentException broken) {
            throw new InputException("the server's URL is invalid");
        }
        boolean isHttp = "http".equalsIgnoreCase(address.getScheme()) || "https".equalsIgnoreCase(address.getScheme());
        if (!isHttp || address.getHost() == null || address.getQuery() != null || address.getFragment() != null) {
            throw new InputException(
                "the server's URL is invalid: expected http:// or https://, a host, no query or fragment");
        }
        return url.replaceFirst("/+$", "");
    }

    /** Sends one request and returns the response. */
    CompletableFuture<Reply> send(Request request, Optional<Duration> left) {
        HttpRequest prepared = prepared(request, request.target(left));
        return http.sendAsync(prepared, LimitedBody.upTo(most)).thenApply(Transport::replied)
            .exceptionallyCompose(failure -> CompletableFuture.failedFuture(said(request, Failures.cause(failure))));
    }

    /** Returns the exception if there is no response. It does not quote the address, which may contain a password. */
    private static Throwable said(Request request, Throwable failure) {
        if (failure instanceof IOException broken) {
            String why = broken.getMessage() == null ? broken.getClass().getSimpleName() : broken.getMessage();
            return new ConnectionException(request.method() + " " + request.path() + ": " + why, broken);
        }
        return failure;
    }

    private static Reply replied(HttpResponse<byte[]> response) {
        String encoding = response.headers().firstValue("Content-Encoding").orElse("identity");
        if (!encoding.equalsIgnoreCase("identity")) {
            throw new MalformedAnswerException("the response is compressed, but the client requested it uncompressed");
        }
        return new Reply(response.statusCode(), response.headers(), response.body());
    }

    private HttpRequest prepared(Request request, String target) {
        try {
            HttpRequest.Builder made = HttpRequest.newBuilder(URI.create(base + target))
                .method(request.method(), request.body().publisher())
                // A compressed response would exceed its stated length, and tensors do not compress well.
                .header("Accept-Encoding", "identity")
                .header("User-Agent", "gradserve-java/" + Client.VERSION);
            request.headers().forEach(made::header);
            if (!key.isEmpty()) {
                made.header("Authorization", "Bearer " + key);
            }
            return made.build();
        } catch (IllegalArgumentException unfit) {
            throw new InputException(request.method() + " " + request.path() + " has an invalid header");
        }
    }
}
