package example.gradserve.tests;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;

/** A server that answers requests by a function of "METHOD path?query", and remembers them. */
final class Server implements AutoCloseable {
    /** What is answered. */
    record Answer(int status, String body) {}

    final List<String> requests = new CopyOnWriteArrayList<>();
    final List<String> bodies = new CopyOnWriteArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final HttpServer server;

    Server(Function<String, Answer> answer) throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", exchange -> respond(exchange, answer));
        server.start();
    }

    private void respond(HttpExchange exchange, Function<String, Answer> answer) throws IOException {
        String request = exchange.getRequestMethod() + " " + exchange.getRequestURI();
        requests.add(request);
        bodies.add(new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
        Answer given = answer.apply(request);
        byte[] body = given.body.getBytes(StandardCharsets.UTF_8);
        String media = given.status < 400 ? "application/json" : "application/problem+json";
        exchange.getResponseHeaders().add("Content-Type", media);
        exchange.sendResponseHeaders(given.status, given.status == 304 ? -1 : body.length);
        exchange.getResponseBody().write(given.status == 304 ? new byte[0] : body);
        exchange.close();
    }

    String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
