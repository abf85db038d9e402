package example.gradserve.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import example.gradserve.AnswerTooLargeException;
import example.gradserve.AsyncClient;
import example.gradserve.CallInterruptedException;
import example.gradserve.Client;
import example.gradserve.ConnectionException;
import example.gradserve.DeadlineException;
import example.gradserve.ForwardAnswer;
import example.gradserve.GradientsAnswer;
import example.gradserve.GradserveException;
import example.gradserve.Graph;
import example.gradserve.GraphException;
import example.gradserve.GraphFunction;
import example.gradserve.HessianAnswer;
import example.gradserve.HessianLayout;
import example.gradserve.HessianMatrix;
import example.gradserve.InputException;
import example.gradserve.Node;
import example.gradserve.NodeOffset;
import example.gradserve.Precision;
import example.gradserve.RegisteredGraph;
import example.gradserve.Resident;
import example.gradserve.Surroundings;
import example.gradserve.Tensor;
import example.gradserve.Value;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ClientTest {
    private static final String ONE = "{\"dtype\":\"float64\",\"shape\":[],\"data\":[1]}";
    private static final String VALUES = "{\"values\":[{\"node\":1,\"tensor\":" + ONE + "}]}";
    private static final String KEY = "gs_a_secret";

    private final Graph graph = new Graph();
    private final Node x = graph.input("x");
    private final Node loss = x.square().named("loss");
    private final Map<Node, Value> feeds = Map.of(x, Tensor.scalar(1));

    private static Server.Answer refusal(int status, String code, String more) {
        return new Server.Answer(status, "{\"code\":\"" + code + "\",\"detail\":\"no\"" + more + "}");
    }

    @Test
    void resultsAreLookedUp() throws IOException {
        String answer = VALUES.replace("}]}", "}],\"gradients\":[{\"node\":0,\"tensor\":" + ONE + "}],\"disconnected\":[0]}");
        try (Server server = new Server(request -> new Server.Answer(200, answer))) {
            GradientsAnswer found = new Client(server.url()).gradients(graph, feeds, o -> o.of(loss).wrt(x));
            assertEquals(1, found.value().item());
            assertEquals(1, found.values().get("loss").item());
            assertEquals(1, found.gradients().get(x).item());
            assertEquals(1, found.gradients().get(0).item());
            assertEquals(List.of(x), found.disconnected());
            assertThrows(InputException.class, () -> found.gradients().get(loss));
            assertThrows(InputException.class, () -> found.gradients().get(""));
        }
    }

    @Test
    void fieldsThatAreNewerTravel() throws IOException {
        try (Server server = new Server(request -> new Server.Answer(200, VALUES))) {
            new Client(server.url()).forward(graph, feeds, o -> o.field("newer", Map.of("a", List.of(1, true))));
            assertTrue(server.bodies.get(0).contains("\"newer\":{\"a\":[1,true]}"), server.bodies.get(0));
        }
    }

    @Test
    void aPrecisionTravels() throws IOException {
        try (Server server = new Server(request -> new Server.Answer(200, VALUES))) {
            Client client = new Client(server.url());
            client.forward(graph, feeds);
            assertFalse(server.bodies.get(0).contains("precision"), server.bodies.get(0));
            for (Precision precision : Precision.values()) {
                client.forward(graph, feeds, o -> o.precision(precision));
                String word = List.of("float32", "tf32x3", "tf32", "bfloat16").get(precision.ordinal());
                String body = server.bodies.get(server.bodies.size() - 1);
                assertTrue(body.contains("\"precision\":\"" + word + "\""), body);
            }
        }
    }

    @Test
    void aLayoutTravelsAndAMatrixIsLookedUp() throws IOException {
        String blocks = VALUES.replace("}]}", "}],\"gradients\":[],\"hessian\":[]}");
        String matrix = "{\"offsets\":[{\"node\":1,\"offset\":0,\"size\":1},{\"node\":0,\"offset\":1,\"size\":2}],"
            + "\"tensor\":{\"dtype\":\"float64\",\"shape\":[3,3],\"data\":[0,1,2,3,4,5,6,7,8]}}";
        String one = blocks.replace("\"hessian\":[]", "\"hessian\":[],\"matrix\":" + matrix);
        Iterator<String> answers = List.of(blocks, one).iterator();
        try (Server server = new Server(request -> new Server.Answer(200, answers.next()))) {
            Client client = new Client(server.url());
            assertTrue(client.hessian(graph, feeds).matrix().isEmpty());
            assertFalse(server.bodies.get(0).contains("layout"), server.bodies.get(0));
            HessianAnswer found = client.hessian(graph, feeds, o -> o.wrt(loss, x).layout(HessianLayout.MATRIX));
            assertTrue(server.bodies.get(1).contains("\"layout\":\"matrix\""), server.bodies.get(1));
            HessianMatrix read = found.matrix().orElseThrow();
            assertEquals(new NodeOffset(1, 2), read.offsets().get(x));
            assertEquals(new NodeOffset(0, 1), read.offsets().get("loss"));
            assertEquals(9, read.tensor().size());
            assertEquals(0, found.hessian().size());
            assertFalse(found.fields().has("matrix"));
        }
    }

    @Test
    void aMemoryBudgetTravels() throws IOException {
        try (Server server = new Server(request -> new Server.Answer(200, VALUES))) {
            Client client = new Client(server.url());
            client.forward(graph, feeds);
            assertFalse(server.bodies.get(0).contains("memory_budget"), server.bodies.get(0));
            client.forward(graph, feeds, o -> o.memoryBudget((1L << 40) + 1));
            assertTrue(server.bodies.get(1).contains("\"memory_budget\":1099511627777"), server.bodies.get(1));
        }
    }

    /** A server that reads what comes and does not answer, until the client closes the connection. */
    private static CompletableFuture<Void> closed(ServerSocket socket, Runnable asked) {
        return CompletableFuture.runAsync(() -> {
            try (Socket connection = socket.accept()) {
                InputStream input = connection.getInputStream();
                while (input.read(new byte[1 << 16]) > 0) {
                    asked.run();
                }
            } catch (IOException reset) {
                // That is a way of closing, too.
            }
        });
    }

    @Test
    void aCancelledFutureEndsItsExchange() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            CompletableFuture<Void> asked = new CompletableFuture<>();
            CompletableFuture<Void> closed = closed(socket, () -> asked.complete(null));
            AsyncClient client = new AsyncClient("http://127.0.0.1:" + socket.getLocalPort());
            CompletableFuture<ForwardAnswer> call = client.forward(graph, feeds);
            asked.join();
            call.cancel(true);
            closed.join();
        }
    }

    @Test
    void aCallOnAServerThatNeverAnswersEndsAtItsDeadline() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Client client = new Client("http://127.0.0.1:" + socket.getLocalPort());
            assertThrows(
                DeadlineException.class, () -> client.forward(graph, feeds, o -> o.timeout(Duration.ofMillis(60))));
        }
    }

    @Test
    void anInterruptEndsTheCallAndIsStillSaid() throws Exception {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Client client = new Client("http://127.0.0.1:" + socket.getLocalPort());
            Thread.currentThread().interrupt();
            assertThrows(CallInterruptedException.class, () -> client.forward(graph, feeds));
            assertTrue(Thread.interrupted());
        }
    }

    @Test
    void aWaitEndsWithItsCall() throws Exception {
        CompletableFuture<Void> pause = new CompletableFuture<>();
        CompletableFuture<Duration> begun = new CompletableFuture<>();
        Surroundings slow = new Surroundings() {
            @Override
            public CompletableFuture<Void> pause(Duration time) {
                begun.complete(time);
                return pause;
            }
        };
        try (Server server = new Server(request -> refusal(503, "queue_full", ""))) {
            AsyncClient client = Client.builder(server.url()).surroundings(slow).build().async();
            CompletableFuture<ForwardAnswer> call = client.forward(graph, feeds);
            begun.get();
            call.cancel(true);
            assertThrows(CancellationException.class, pause::join);
            assertEquals(1, server.requests.size());
        }
    }

    @Test
    void anAnswerThatIsLongerThanMayBeReadIsNotRead() throws IOException {
        try (Server server = new Server(request -> new Server.Answer(200, VALUES))) {
            Client client = Client.builder(server.url()).maxResponseBytes(VALUES.length() - 1).build();
            assertThrows(AnswerTooLargeException.class, () -> client.forward(graph, feeds));
            assertEquals(1, server.requests.size());
            assertEquals(1, Client.builder(server.url()).maxResponseBytes(VALUES.length()).build().forward(graph, feeds)
                .value().item());
        }
    }

    @Test
    void threadsRegisterAGraphOnce() throws IOException {
        try (Server server = new Server(request -> request.contains("/forward")
            ? new Server.Answer(200, VALUES)
            : new Server.Answer(201, "{\"graph_id\":\"g\"}"))) {
            Client client = new Client(server.url());
            RegisteredGraph kept = client.registerLater(graph);
            IntStream.range(0, 16).parallel().forEach(i -> client.forward(kept, feeds));
            assertEquals(1, server.requests.stream().filter(request -> request.startsWith("POST /v1/graphs?")).count());
            assertEquals(Optional.of("g"), kept.id());
        }
    }

    @Test
    void aRegistrationThatFailsIsTriedByTheNextCall() throws IOException {
        boolean[] ready = {false};
        try (Server server = new Server(request -> {
            if (request.contains("/forward")) {
                return new Server.Answer(200, VALUES);
            }
            return ready[0] ? new Server.Answer(201, "{\"graph_id\":\"g\"}") : refusal(507, "store_full", "");
        })) {
            Client client = new Client(server.url());
            RegisteredGraph kept = client.registerLater(graph);
            assertThrows(GradserveException.class, () -> client.forward(kept, feeds));
            ready[0] = true;
            assertEquals(1, client.forward(kept, feeds).value().item());
        }
    }

    @Test
    void aRegisteredGraphIsWhatItWas() throws IOException {
        try (Server server = new Server(request -> new Server.Answer(200, "{\"graph_id\":\"g\",\"values\":[]}"))) {
            Client client = new Client(server.url());
            RegisteredGraph kept = client.register(graph);
            loss.sum();
            client.forward(kept, feeds);
            assertFalse(server.bodies.get(1).contains("\"graph\""));
            assertEquals(2, kept.nodeCount());
        }
    }

    @Test
    void listingsAskForNoMoreThanIsLookedAt() throws IOException {
        try (Server server = new Server(request -> new Server.Answer(
            200, "{\"tensors\":[{\"tensor_id\":\"a\",\"etag\":\"1\"},{\"tensor_id\":\"b\",\"etag\":\"2\"}],\"next\":\"b\"}"))) {
            Client client = new Client(server.url());
            List<String> names = client.tensors(o -> o.limit(2)).limit(3).map(Resident::name).toList();
            assertEquals(List.of("a", "b", "a"), names);
            List<String> asked = server.requests.stream().map(each -> each.replaceAll("&timeout_ms=\\d+", "")).toList();
            assertEquals(List.of("GET /v1/tensors?limit=2", "GET /v1/tensors?limit=2&after=b"), asked);
        }
    }

    @Test
    void aTensorThatDidNotChangeIsNotSent() throws IOException {
        try (Server server = new Server(request -> new Server.Answer(304, ""))) {
            Resident known = new Resident("w", "5", Optional.empty(), null, Optional.empty(), null);
            assertEquals(Optional.empty(), new Client(server.url()).getIfChanged(known));
        }
    }

    @Test
    void aRefusalNamesTheLineThatWroteTheNode() throws IOException {
        try (Server server = new Server(request -> refusal(422, "shape_mismatch", ",\"node\":1"))) {
            GraphException refused =
                assertThrows(GraphException.class, () -> new Client(server.url()).forward(graph, feeds));
            assertEquals(
                "shape_mismatch: no (node 1 (square, 'loss') was written at " + loss.line() + ")", refused.getMessage());
            assertEquals(1, refused.problem().orElseThrow().node().getAsInt());
        }
    }

    @Test
    void aRefusalNamesTheLineInAFunction() throws IOException {
        GraphFunction neg = graph.function("f", body -> List.of(body.input("y").neg()));
        Node used = graph.call(neg, List.of(x));
        String there = "no (node 2 (call) was written at " + used.line() + "; ";
        Map<String, String> told = Map.of(
            ",\"function_node\":1",
            there + "node 1 (neg) of the function 'f' was written at " + neg.outputs().get(0).line() + ")",
            "",
            there + "function 0 ('f'))");
        for (String place : told.keySet()) {
            String more = ",\"node\":2,\"function\":0" + place;
            try (Server server = new Server(request -> refusal(422, "shape_mismatch", more))) {
                GraphException refused =
                    assertThrows(GraphException.class, () -> new Client(server.url()).forward(graph, feeds));
                assertEquals("shape_mismatch: " + told.get(place), refused.getMessage());
                assertEquals(0, refused.problem().orElseThrow().function().getAsInt());
            }
        }
    }

    @Test
    void aFailureHasTheStackOfTheCall() throws IOException {
        try (Server server = new Server(request -> refusal(422, "bad_tensor", ""))) {
            GraphException refused =
                assertThrows(GraphException.class, () -> new Client(server.url()).forward(graph, feeds));
            assertTrue(List.of(refused.getStackTrace()).stream()
                .anyMatch(frame -> frame.getClassName().equals(ClientTest.class.getName())));
        }
    }

    @Test
    void futuresFailWithTheSame() throws IOException {
        try (Server server = new Server(request -> refusal(422, "bad_tensor", ""))) {
            AsyncClient client = new AsyncClient(server.url());
            ExecutionException refused = assertThrows(ExecutionException.class, () -> client.forward(graph, feeds).get());
            assertInstanceOf(GraphException.class, refused.getCause());
            ExecutionException unsent =
                assertThrows(ExecutionException.class, () -> client.forward(new Graph(), feeds).get());
            assertInstanceOf(InputException.class, unsent.getCause());
        }
    }

    @Test
    void keysAndPasswordsArePrintedNowhere() throws IOException {
        int free;
        try (ServerSocket socket = new ServerSocket(0)) {
            free = socket.getLocalPort();
        }
        Client client = Client.builder("http://user:" + KEY + "@127.0.0.1:" + free).apiKey(KEY).retries(0).build();
        ConnectionException failure = assertThrows(ConnectionException.class, () -> client.forward(graph, feeds));
        StringWriter printed = new StringWriter();
        failure.printStackTrace(new PrintWriter(printed));
        for (String text : List.of(
            printed.toString(), client.toString(), client.async().toString(), Client.builder("http://h").apiKey(KEY).toString())) {
            assertFalse(text.contains(KEY), text);
        }
        InputException refused =
            assertThrows(InputException.class, () -> Client.builder("http://h").apiKey(KEY + "\n").build());
        assertFalse(refused.getMessage().contains(KEY));
    }

    @Test
    void urlsThatAreNoneAreRefused() {
        for (String url : List.of("", "h:80", "ftp://h", "http://", "http://h?a", "http://h#a", "http://h ")) {
            assertThrows(InputException.class, () -> new Client(url), url);
        }
    }

    @Test
    void theRequestGoesAsItsTensorsDo() throws IOException {
        try (Server server = new Server(request -> new Server.Answer(200, VALUES))) {
            new Client(server.url()).forward(graph, Map.of(x, Tensor.of(new double[512], 512)));
            byte[] begin = server.bodies.get(0).substring(8, 40).getBytes(StandardCharsets.UTF_8);
            assertTrue(new String(begin, StandardCharsets.UTF_8).startsWith("{\"__metadata__\""));
        }
    }
}
