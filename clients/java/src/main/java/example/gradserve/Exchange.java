package example.gradserve;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.concurrent.CompletableFuture;

/** A request with all of its attempts, under one idempotency key. */
final class Exchange {
    private static final String KEY = "Idempotency-Key";

    private final Running running;
    private final Tries tries;
    private final boolean hasKey;
    private Request request;

    Exchange(Running running, Request request, boolean idempotency) {
        Settings settings = running.settings;
        this.running = running;
        this.hasKey = request.keeps() && idempotency;
        this.request = hasKey ? request.withHeader(KEY, settings.surroundings().newKey()) : request;
        int retries = hasKey || !request.keeps() ? settings.retries() : 0;
        this.tries = new Tries(retries, running.deadline, settings.surroundings());
    }

    /** Sends the request, and retries until there is a response. Fails with the error of the last attempt. */
    CompletableFuture<Reply> run() {
        return running.send(request).thenApply(Reply::checked).exceptionallyCompose(this::again);
    }

    private CompletableFuture<Reply> again(Throwable failure) {
        if (Failures.cause(failure) instanceof GradserveException known) {
            return running.pause(tries.after(known)).thenCompose(nothing -> run());
        }
        return CompletableFuture.failedFuture(failure);
    }

    /** Makes a call on a graph or a registered graph, which it registers first if the server does not have it. */
    CompletableFuture<Reply> runOn(Computable on) {
        CompletableFuture<Reply> reply = on instanceof RegisteredGraph registered ? runOn(registered) : run();
        return reply.exceptionallyCompose(failure ->
            CompletableFuture.failedFuture(explained(on.graph(), hasKey, failure)));
    }

    private CompletableFuture<Reply> runOn(RegisteredGraph graph) {
        Request call = request;
        return graph.registered(running).thenCompose(known -> {
            request = call.withPath(known.pathOf(call));
            return run().exceptionallyCompose(failure -> isOfTheGraph(Failures.cause(failure))
                ? graph.registeredAgain(running, known).thenCompose(again -> {
                    request = request.withPath(again.pathOf(call));
                    return run();
                })
                : CompletableFuture.failedFuture(failure));
        });
    }

    /** Returns whether the graph itself is missing. A missing tensor is reported with its node. */
    private static boolean isOfTheGraph(Throwable failure) {
        return failure instanceof NotFoundException missing && missing.code().equals("not_found")
            && missing.problem().filter(each -> each.node().isEmpty() && each.pointer().isEmpty()).isPresent();
    }

    /** Adds to a problem report what only the client knows: the node, and that it sent an Idempotency-Key. */
    static Throwable explained(Graph graph, boolean hasKey, Throwable failure) {
        Throwable cause = Failures.cause(failure);
        return cause instanceof GradserveException known && known.problem().isPresent()
            ? RefusalException.of(known.problem().get(), remark(graph, hasKey, known.problem().get()))
            : cause;
    }

    /** Returns the line that created a node, if it is known. */
    private static Optional<String> written(Graph graph, OptionalInt id) {
        if (id.isEmpty() || id.getAsInt() < 0 || id.getAsInt() >= graph.nodes().size()) {
            return Optional.empty();
        }
        Node node = graph.node(id.getAsInt());
        return Optional.of(node + (node.line().isEmpty() ? "" : " was written at " + node.line()));
    }

    private static String remark(Graph graph, boolean hasKey, Problem problem) {
        List<String> remarks = new ArrayList<>();
        written(graph, problem.node()).ifPresent(remarks::add);
        problem.function().ifPresent(index -> {
            if (0 <= index && index < graph.functions().size()) {
                GraphFunction function = graph.functions().get(index);
                remarks.add(written(function.body(), problem.functionNode()).orElseGet(function::toString));
            }
        });
        if (hasKey && problem.status() == 413 && problem.code().equals("over_budget")) {
            remarks.add("the client sent an Idempotency-Key, so that a retry does nothing twice; if the response "
                + "is too long to be stored for the key, send none: idempotency(false)");
        }
        return String.join("; ", remarks);
    }
}
