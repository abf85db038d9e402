package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/**
 * A registered graph. Pass it to calls in place of a graph: it is not sent again.
 *
 * <p>The first call that uses it registers it, unless it is registered already. If the server no longer has the graph,
 * the call registers it again. It is the graph as it was: nodes appended later are not part of it. Threads can share
 * it.
 */
public final class RegisteredGraph implements Computable {
    private final Graph graph;
    private final int nodeCount;
    private final Request request;
    private volatile Registration known;
    /** Done when all running and waiting registrations are done. */
    private CompletableFuture<?> turn = CompletableFuture.completedFuture(null);

    /** The server's response. */
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

    /** Reads a registered graph from a response. */
    static RegisteredGraph read(ObjectNode answer) {
        Graph graph = Graph.read(Json.member(answer, "graph"), Map.of());
        String description = Json.textOr(answer, "description", "");
        return new RegisteredGraph(graph, new RegisterOptions().description(description), Registration.read(answer));
    }

    /** Returns the registration, and registers the graph first if necessary. */
    CompletableFuture<Registration> registered(Running running) {
        Registration before = known;
        return before != null ? CompletableFuture.completedFuture(before) : registeredAgain(running, null);
    }

    /** Registers the graph again, because the server no longer has it, unless another call has done so. */
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
     * Returns the hash of the graph.
     *
     * @return empty until the graph is registered
     */
    public Optional<String> id() {
        return Optional.ofNullable(known).map(Registration::id);
    }

    /**
     * Returns the server's response by API names, without the graph.
     *
     * @return empty until the graph is registered
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
