package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/**
 * A graph that the server keeps, and that stands wherever a call takes a graph: it is not sent again.
 *
 * <p>It is registered by the first call that needs it, unless it is already, and once more by one that finds it
 * forgotten. It is the graph as it was: nodes that are appended later are not part of it. Threads may share it.
 */
public final class RegisteredGraph implements Computable {
    private final Graph graph;
    private final int nodeCount;
    private final Request request;
    private volatile Registration known;
    /** Done when whoever registers it now, or waits to, has done so. */
    private CompletableFuture<?> turn = CompletableFuture.completedFuture(null);

    /** What the server answered. */
    record Registration(String id, ObjectNode fields) {
        static Registration read(ObjectNode answer) {
            answer.remove("graph");
            return new Registration(Json.text(answer, "graph_id"), answer);
        }

        String pathOf(Request call) {
            return Request.graphPath(id) + call.path().substring("/v1".length());
        }
    }

    RegisteredGraph(Graph graph, RegisterOptions options, Registration known) {
        this.graph = graph;
        this.nodeCount = graph.nodeCount();
        this.request = Request.registering(graph, options);
        this.known = known;
    }

    /** The graph that an answer holds. */
    static RegisteredGraph read(ObjectNode answer) {
        Graph graph = Graph.read(Json.member(answer, "graph"), Map.of());
        String description = Json.textOr(answer, "description", "");
        return new RegisteredGraph(graph, new RegisterOptions().description(description), Registration.read(answer));
    }

    /** What it is registered as, by somebody else or by this call. */
    CompletableFuture<Registration> registered(Running running) {
        Registration before = known;
        return before != null ? CompletableFuture.completedFuture(before) : registeredAgain(running, null);
    }

    /** What it is registered as, now that it was found not to be kept any more. */
    CompletableFuture<Registration> registeredAgain(Running running, Registration stale) {
        return running.step(inTurn(() -> known != stale
            ? CompletableFuture.completedFuture(known)
            : new Exchange(running, request, running.settings.idempotency()).run().thenApply(reply -> {
                known = MalformedAnswerException.unless(() -> Registration.read(reply.object()));
                return known;
            })));
    }

    private synchronized <T> CompletableFuture<T> inTurn(Supplier<CompletableFuture<T>> work) {
        CompletableFuture<T> done = turn.thenCompose(nothing -> work.get());
        turn = done.handle((value, failure) -> null);
        return done;
    }

    @Override
    public Graph graph() {
        return graph;
    }

    @Override
    public int nodeCount() {
        return nodeCount;
    }

    /**
     * The hash of the graph.
     *
     * @return empty as long as the server was not asked
     */
    public Optional<String> id() {
        return Optional.ofNullable(known).map(Registration::id);
    }

    /**
     * What the server answered, by names on the wire, but for the graph.
     *
     * @return empty as long as it was not asked
     */
    public ObjectNode fields() {
        Registration now = known;
        return now == null ? Json.object() : now.fields().deepCopy();
    }

    @Override
    public String toString() {
        return "registered " + graph;
    }
}
