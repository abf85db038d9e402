package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * A client whose calls are futures, which fail with a {@link GradserveException}. To cancel the future of a call ends
 * the call, with its requests and waits.
 */
public final class AsyncClient {
    private final Settings settings;

    /**
     * A client with the usual settings. {@link Client#builder} makes others, each with one of these in it.
     *
     * @param url the server's, such as {@code http://127.0.0.1:8000}
     * @throws InputException for what cannot be a URL
     */
    public AsyncClient(String url) {
        this(new ClientBuilder(url).settings());
    }

    AsyncClient(Settings settings) {
        this.settings = settings;
    }

    private static <T> T stated(T options, Consumer<? super T> stating) {
        stating.accept(options);
        return options;
    }

    private <A> CompletableFuture<A> compute(String call, Computable on, Asked asked, Function<AnswerReader, A> read) {
        return Running.call(settings, asked.timeout, running -> {
            boolean makesKeys = asked.idempotency.orElse(settings.idempotency());
            return new Exchange(running, Request.computing(call, on, asked), makesKeys).runOn(on).thenApply(reply ->
                MalformedAnswerException.unless(() -> read.apply(new AnswerReader(on.graph(), reply))));
        });
    }

    /** A request that is a call by itself, and what is read in its answer. */
    private <T> CompletableFuture<T> once(Supplier<Request> request, Function<Reply, T> read) {
        return Running.call(settings, Optional.empty(), running ->
            new Exchange(running, request.get(), settings.idempotency()).run().thenApply(reply ->
                MalformedAnswerException.unless(() -> read.apply(reply))));
    }

    private static Resident handle(Reply reply) {
        return Resident.read(reply.object());
    }

    /**
     * Values of nodes, of the last one unless stated.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return a future of the values
     */
    public CompletableFuture<ForwardAnswer> forward(Computable graph, Map<Node, ? extends Value> feeds) {
        return forward(graph, feeds, options -> {});
    }

    /**
     * Values of nodes, of the last one unless stated.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return a future of the values
     */
    public CompletableFuture<ForwardAnswer> forward(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<ForwardOptions> options) {
        Asked asked = stated(new ForwardOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        return compute("forward", graph, asked, ForwardAnswer::new);
    }

    /**
     * Values, and the gradients of one node.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return a future of values and gradients
     */
    public CompletableFuture<GradientsAnswer> gradients(Computable graph, Map<Node, ? extends Value> feeds) {
        return gradients(graph, feeds, options -> {});
    }

    /**
     * Values, and the gradients of one node.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return a future of values and gradients
     */
    public CompletableFuture<GradientsAnswer> gradients(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<GradientsOptions> options) {
        Asked asked = stated(new GradientsOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        return compute("gradients", graph, asked, GradientsAnswer::new);
    }

    /**
     * Cotangents of outputs times the Jacobian.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param cotangents one for each output
     * @return a future of values, and gradients that the cotangents weight
     */
    public CompletableFuture<GradientsAnswer> vjp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> cotangents) {
        return vjp(graph, feeds, cotangents, options -> {});
    }

    /**
     * Cotangents of outputs times the Jacobian.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param cotangents one for each output
     * @param options states what is optional
     * @return a future of values, and gradients that the cotangents weight
     */
    public CompletableFuture<GradientsAnswer> vjp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> cotangents,
        Consumer<VjpOptions> options) {
        Asked asked = stated(new VjpOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        asked.tensors.put("cotangents", cotangents);
        return compute("vjp", graph, asked, GradientsAnswer::new);
    }

    /**
     * The Jacobian times tangents of leaves; others stay.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param tangents of leaves
     * @return a future of values, and their derivatives along the tangents
     */
    public CompletableFuture<JvpAnswer> jvp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> tangents) {
        return jvp(graph, feeds, tangents, options -> {});
    }

    /**
     * The Jacobian times tangents of leaves; others stay.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param tangents of leaves
     * @param options states what is optional
     * @return a future of values, and their derivatives along the tangents
     */
    public CompletableFuture<JvpAnswer> jvp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> tangents,
        Consumer<JvpOptions> options) {
        Asked asked = stated(new JvpOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        asked.tensors.put("tangents", tangents);
        return compute("jvp", graph, asked, JvpAnswer::new);
    }

    /**
     * Whole Jacobians, a block for each output and node that it is differentiated by.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return a future of values and Jacobians
     */
    public CompletableFuture<JacobianAnswer> jacobian(Computable graph, Map<Node, ? extends Value> feeds) {
        return jacobian(graph, feeds, options -> {});
    }

    /**
     * Whole Jacobians, a block for each output and node that it is differentiated by.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return a future of values and Jacobians
     */
    public CompletableFuture<JacobianAnswer> jacobian(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<JacobianOptions> options) {
        Asked asked = stated(new JacobianOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        return compute("jacobian", graph, asked, JacobianAnswer::new);
    }

    /**
     * The Hessian times vectors, exactly.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param vectors one for each node that it is differentiated by
     * @return a future of values, gradients and products
     */
    public CompletableFuture<HvpAnswer> hvp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> vectors) {
        return hvp(graph, feeds, vectors, options -> {});
    }

    /**
     * The Hessian times vectors, exactly.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param vectors one for each node that it is differentiated by
     * @param options states what is optional
     * @return a future of values, gradients and products
     */
    public CompletableFuture<HvpAnswer> hvp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> vectors,
        Consumer<HvpOptions> options) {
        Asked asked = stated(new HvpOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        asked.tensors.put("vectors", vectors);
        return compute("hvp", graph, asked, HvpAnswer::new);
    }

    /**
     * Whole Hessians, a block for each pair of nodes that it is differentiated by.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return a future of values, gradients and Hessians
     */
    public CompletableFuture<HessianAnswer> hessian(Computable graph, Map<Node, ? extends Value> feeds) {
        return hessian(graph, feeds, options -> {});
    }

    /**
     * Whole Hessians, a block for each pair of nodes that it is differentiated by.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return a future of values, gradients and Hessians
     */
    public CompletableFuture<HessianAnswer> hessian(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<HessianOptions> options) {
        Asked asked = stated(new HessianOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        return compute("hessian", graph, asked, HessianAnswer::new);
    }

    /**
     * One graph on many examples: values and gradients of each.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return a future of values and gradients, all with a leading axis
     */
    public CompletableFuture<GradientsAnswer> batch(Computable graph, Map<Node, ? extends Value> feeds) {
        return batch(graph, feeds, options -> {});
    }

    /**
     * One graph on many examples: values and gradients of each.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return a future of values and gradients, all with a leading axis
     */
    public CompletableFuture<GradientsAnswer> batch(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<BatchOptions> options) {
        Asked asked = stated(new BatchOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        return compute("batch", graph, asked, GradientsAnswer::ofBatch);
    }

    /**
     * Compares gradients with central differences.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return a future of how far apart they are
     */
    public CompletableFuture<CheckAnswer> check(Computable graph, Map<Node, ? extends Value> feeds) {
        return check(graph, feeds, options -> {});
    }

    /**
     * Compares gradients with central differences.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return a future of how far apart they are
     */
    public CompletableFuture<CheckAnswer> check(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<CheckOptions> options) {
        Asked asked = stated(new CheckOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        return compute("check", graph, asked, CheckAnswer::new);
    }

    /**
     * Says what a call would take. Nothing is run.
     *
     * @param graph a graph, or one that the server keeps
     * @param types what each leaf would be fed
     * @return a future of a forecast
     */
    public CompletableFuture<PlanAnswer> plan(Computable graph, Map<Node, TensorType> types) {
        return plan(graph, types, options -> {});
    }

    /**
     * Says what a call would take. Nothing is run.
     *
     * @param graph a graph, or one that the server keeps
     * @param types what each leaf would be fed
     * @param options states what is optional
     * @return a future of a forecast
     */
    public CompletableFuture<PlanAnswer> plan(
        Computable graph, Map<Node, TensorType> types, Consumer<PlanOptions> options) {
        Asked asked = stated(new PlanOptions(), options).asked;
        asked.types = Optional.of(types);
        return compute("plan", graph, asked, PlanAnswer::new);
    }

    /**
     * The gradient as a graph. Nothing is run.
     *
     * @param graph a graph, or one that the server keeps
     * @param types what each leaf would be fed
     * @return a future of the graph, and which of its nodes are gradients
     */
    public CompletableFuture<DifferentiateAnswer> differentiate(Computable graph, Map<Node, TensorType> types) {
        return differentiate(graph, types, options -> {});
    }

    /**
     * The gradient as a graph. Nothing is run.
     *
     * @param graph a graph, or one that the server keeps
     * @param types what each leaf would be fed
     * @param options states what is optional
     * @return a future of the graph, and which of its nodes are gradients
     */
    public CompletableFuture<DifferentiateAnswer> differentiate(
        Computable graph, Map<Node, TensorType> types, Consumer<DifferentiateOptions> options) {
        Asked asked = stated(new DifferentiateOptions(), options).asked;
        asked.types = Optional.of(types);
        return compute("differentiate", graph, asked, DifferentiateAnswer::new);
    }

    /**
     * A graph that the first call which needs it registers, within its own time.
     *
     * @param graph as it is now
     * @return the graph, on which calls may be made
     */
    public RegisteredGraph registerLater(Graph graph) {
        return new RegisteredGraph(graph, new RegisterOptions(), null);
    }

    /**
     * Has the server keep a graph.
     *
     * @param graph as it is now
     * @return a future of the graph, on which calls may be made
     */
    public CompletableFuture<RegisteredGraph> register(Graph graph) {
        return register(graph, options -> {});
    }

    /**
     * Has the server keep a graph.
     *
     * @param graph as it is now
     * @param options states what is optional
     * @return a future of the graph, on which calls may be made
     */
    public CompletableFuture<RegisteredGraph> register(Graph graph, Consumer<RegisterOptions> options) {
        return Running.call(settings, Optional.empty(), running -> {
            RegisteredGraph made = new RegisteredGraph(graph, stated(new RegisterOptions(), options), null);
            return made.registered(running).thenApply(known -> made).exceptionallyCompose(failure ->
                CompletableFuture.failedFuture(Exchange.explained(graph, false, failure)));
        });
    }

    /**
     * Has the server keep a tensor, which calls may name from then on.
     *
     * @param name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param tensor what is to be kept
     * @return a future of its handle
     */
    public CompletableFuture<Resident> put(String name, Tensor tensor) {
        return put(name, tensor, options -> {});
    }

    /**
     * Has the server keep a tensor, which calls may name from then on.
     *
     * @param name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param tensor what is to be kept
     * @param options states what is optional
     * @return a future of its handle
     */
    public CompletableFuture<Resident> put(String name, Tensor tensor, Consumer<PutOptions> options) {
        return once(() -> Request.putting(name, tensor, stated(new PutOptions(), options)), AsyncClient::handle);
    }

    /**
     * A tensor that the server keeps, as it is now.
     *
     * @param name of a resident tensor
     * @return a future of its handle and elements
     */
    public CompletableFuture<ResidentTensor> get(String name) {
        return get(name, options -> {});
    }

    /**
     * A tensor that the server keeps, as it is now.
     *
     * @param name of a resident tensor
     * @param options states what is optional
     * @return a future of its handle and elements
     */
    public CompletableFuture<ResidentTensor> get(String name, Consumer<GetOptions> options) {
        return once(() -> Request.getting(name, stated(new GetOptions(), options)), reply -> reply.tensor(name));
    }

    /**
     * Has the server keep a tensor no more.
     *
     * @param name of a resident tensor
     * @return a future of the handle of what there was
     */
    public CompletableFuture<Resident> delete(String name) {
        return delete(name, options -> {});
    }

    /**
     * Has the server keep a tensor no more.
     *
     * @param name of a resident tensor
     * @param options states what is optional
     * @return a future of the handle of what there was
     */
    public CompletableFuture<Resident> delete(String name, Consumer<DeleteOptions> options) {
        return once(
            () -> Request.deleting(Request.tensorPath(name), stated(new DeleteOptions(), options).ifMatch),
            AsyncClient::handle);
    }

    /**
     * A tensor that the server keeps, where it is another version by now than this one.
     *
     * @param than a handle
     * @return a future of its handle and elements; of nothing where it is the same version
     */
    public CompletableFuture<Optional<ResidentTensor>> getIfChanged(Resident than) {
        GetOptions options = new GetOptions();
        options.ifNoneMatch = than.etag();
        return once(() -> Request.getting(than.name(), options), reply ->
            reply.status() == 304 ? Optional.empty() : Optional.of(reply.tensor(than.name())));
    }

    /**
     * A graph that the server keeps already. Its nodes are found by their names and ids.
     *
     * @param id its hash
     * @return a future of the graph, on which calls may be made
     */
    public CompletableFuture<RegisteredGraph> registered(String id) {
        return once(() -> Request.reading(Request.graphPath(id)), reply -> RegisteredGraph.read(reply.object()));
    }

    /**
     * Has the server forget a graph.
     *
     * @param id its hash
     * @return a future of what there was
     */
    public CompletableFuture<GraphSummary> unregister(String id) {
        return once(() -> Request.deleting(Request.graphPath(id), ""), reply -> GraphSummary.read(reply.object()));
    }

    /**
     * Has the server keep a model, in place of the one of this name, if there is one.
     *
     * @param name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param definition what it is to be
     * @return a future of what is kept
     */
    public CompletableFuture<Model> putModel(String name, ModelDefinition definition) {
        return putModel(name, definition, options -> {});
    }

    /**
     * Has the server keep a model, in place of the one of this name, if there is one.
     *
     * @param name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param definition what it is to be
     * @param options states what is optional
     * @return a future of what is kept
     */
    public CompletableFuture<Model> putModel(
        String name, ModelDefinition definition, Consumer<PutModelOptions> options) {
        return once(
            () -> Request.puttingModel(name, definition, stated(new PutModelOptions(), options)),
            reply -> Model.read(reply.object()));
    }

    /**
     * A model that the server keeps, as it is now.
     *
     * @param name of a model
     * @return a future of it
     */
    public CompletableFuture<Model> model(String name) {
        return once(() -> Request.reading(Request.modelPath(name)), reply -> Model.read(reply.object()));
    }

    /**
     * Has the server keep a model no more. Its graph and its tensors stay.
     *
     * @param name of a model
     * @return a future of what there was
     */
    public CompletableFuture<Model> deleteModel(String name) {
        return deleteModel(name, options -> {});
    }

    /**
     * Has the server keep a model no more. Its graph and its tensors stay.
     *
     * @param name of a model
     * @param options states what is optional
     * @return a future of what there was
     */
    public CompletableFuture<Model> deleteModel(String name, Consumer<DeleteOptions> options) {
        return once(
            () -> Request.deleting(Request.modelPath(name), stated(new DeleteOptions(), options).ifMatch),
            reply -> Model.read(reply.object()));
    }

    /**
     * A page of the tensors that the server keeps, by name.
     *
     * @param options states how long it may be, and where it begins
     * @return a future of handles
     */
    public CompletableFuture<Page<Resident>> tensors(Consumer<ListOptions> options) {
        return page("tensors", options, Resident::read);
    }

    /**
     * A page of the graphs that the server keeps, in the order in which they came.
     *
     * @param options states how long it may be, and where it begins
     * @return a future of what is known of them
     */
    public CompletableFuture<Page<GraphSummary>> graphs(Consumer<ListOptions> options) {
        return page("graphs", options, GraphSummary::read);
    }

    /**
     * A page of the models that the server keeps, by name.
     *
     * @param options states how long it may be, and where it begins
     * @return a future of models
     */
    public CompletableFuture<Page<Model>> models(Consumer<ListOptions> options) {
        return page("models", options, Model::read);
    }

    private <T> CompletableFuture<Page<T>> page(
        String kind, Consumer<ListOptions> options, Function<ObjectNode, T> entry) {
        return once(() -> Request.listing(kind, stated(new ListOptions(), options)), reply ->
            Page.read(reply.object(), kind, entry));
    }

    /**
     * The server's catalogue.
     *
     * @return a future of the ops that it has
     */
    public CompletableFuture<Catalogue> ops() {
        return once(() -> Request.reading("/v1/ops"), reply -> Catalogue.read(reply.object()));
    }

    @Override
    public String toString() {
        return "client of gradserve";
    }
}
