package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * A client whose calls return futures, which fail with a {@link GradserveException}. Cancelling the future of a call
 * aborts the call, with its requests and waits.
 */
public final class AsyncClient {
    private final Settings settings;

    /**
     * Creates a client with default settings. For other settings, use {@link Client#builder} and {@link Client#async}.
     *
     * @param url the address of the server, such as {@code http://127.0.0.1:8000}
     * @throws InputException if the URL is invalid
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

    /** Sends a request that is a call by itself, and reads its response. */
    private <T> CompletableFuture<T> once(Supplier<Request> request, Function<Reply, T> read) {
        return Running.call(settings, Optional.empty(), running ->
            new Exchange(running, request.get(), settings.idempotency()).run().thenApply(reply ->
                MalformedAnswerException.unless(() -> read.apply(reply))));
    }

    private static Resident handle(Reply reply) {
        return Resident.read(reply.object());
    }

    /**
     * Computes the values of nodes, by default of the last one.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return a future of the values
     */
    public CompletableFuture<ForwardAnswer> forward(Computable graph, Map<Node, ? extends Value> feeds) {
        return forward(graph, feeds, options -> {});
    }

    /**
     * Computes the values of nodes, by default of the last one.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
     * @return a future of the values
     */
    public CompletableFuture<ForwardAnswer> forward(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<ForwardOptions> options) {
        Asked asked = stated(new ForwardOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        return compute("forward", graph, asked, ForwardAnswer::new);
    }

    /**
     * Computes values, and the gradients of one node.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return a future of values and gradients
     */
    public CompletableFuture<GradientsAnswer> gradients(Computable graph, Map<Node, ? extends Value> feeds) {
        return gradients(graph, feeds, options -> {});
    }

    /**
     * Computes values, and the gradients of one node.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
     * @return a future of values and gradients
     */
    public CompletableFuture<GradientsAnswer> gradients(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<GradientsOptions> options) {
        Asked asked = stated(new GradientsOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        return compute("gradients", graph, asked, GradientsAnswer::new);
    }

    /**
     * Computes vector-Jacobian products.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param cotangents a cotangent for each output
     * @return a future of values and vector-Jacobian products
     */
    public CompletableFuture<GradientsAnswer> vjp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> cotangents) {
        return vjp(graph, feeds, cotangents, options -> {});
    }

    /**
     * Computes vector-Jacobian products.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param cotangents a cotangent for each output
     * @param options sets options
     * @return a future of values and vector-Jacobian products
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
     * Computes Jacobian-vector products.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param tangents tangents of leaves; leaves without a tangent are held constant
     * @return a future of values and Jacobian-vector products
     */
    public CompletableFuture<JvpAnswer> jvp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> tangents) {
        return jvp(graph, feeds, tangents, options -> {});
    }

    /**
     * Computes Jacobian-vector products.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param tangents tangents of leaves; leaves without a tangent are held constant
     * @param options sets options
     * @return a future of values and Jacobian-vector products
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
     * Computes full Jacobians, one block for each output and node of {@code wrt}.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return a future of values and Jacobians
     */
    public CompletableFuture<JacobianAnswer> jacobian(Computable graph, Map<Node, ? extends Value> feeds) {
        return jacobian(graph, feeds, options -> {});
    }

    /**
     * Computes full Jacobians, one block for each output and node of {@code wrt}.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
     * @return a future of values and Jacobians
     */
    public CompletableFuture<JacobianAnswer> jacobian(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<JacobianOptions> options) {
        Asked asked = stated(new JacobianOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        return compute("jacobian", graph, asked, JacobianAnswer::new);
    }

    /**
     * Computes exact Hessian-vector products.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param vectors a vector for each node of {@code wrt}
     * @return a future of values, gradients and products
     */
    public CompletableFuture<HvpAnswer> hvp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> vectors) {
        return hvp(graph, feeds, vectors, options -> {});
    }

    /**
     * Computes exact Hessian-vector products.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param vectors a vector for each node of {@code wrt}
     * @param options sets options
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
     * Computes full Hessians, one block for each pair of nodes of {@code wrt}.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return a future of values, gradients and Hessians
     */
    public CompletableFuture<HessianAnswer> hessian(Computable graph, Map<Node, ? extends Value> feeds) {
        return hessian(graph, feeds, options -> {});
    }

    /**
     * Computes full Hessians, one block for each pair of nodes of {@code wrt}, or one matrix with
     * {@link HessianLayout#MATRIX}.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
     * @return a future of values, gradients and Hessians
     */
    public CompletableFuture<HessianAnswer> hessian(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<HessianOptions> options) {
        Asked asked = stated(new HessianOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        return compute("hessian", graph, asked, HessianAnswer::new);
    }

    /**
     * Runs one graph on many examples, and computes the values and gradients of each.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return a future of values and gradients, all with a leading axis
     */
    public CompletableFuture<GradientsAnswer> batch(Computable graph, Map<Node, ? extends Value> feeds) {
        return batch(graph, feeds, options -> {});
    }

    /**
     * Runs one graph on many examples, and computes the values and gradients of each.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
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
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return a future of the gradient check's result
     */
    public CompletableFuture<CheckAnswer> check(Computable graph, Map<Node, ? extends Value> feeds) {
        return check(graph, feeds, options -> {});
    }

    /**
     * Compares gradients with central differences.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
     * @return a future of the gradient check's result
     */
    public CompletableFuture<CheckAnswer> check(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<CheckOptions> options) {
        Asked asked = stated(new CheckOptions(), options).asked;
        asked.tensors.put("feeds", feeds);
        return compute("check", graph, asked, CheckAnswer::new);
    }

    /**
     * Estimates the cost of a call (a dry run), without running it.
     *
     * @param graph a graph or a registered graph
     * @param types the dtypes and shapes of leaves
     * @return a future of the estimates
     */
    public CompletableFuture<PlanAnswer> plan(Computable graph, Map<Node, TensorType> types) {
        return plan(graph, types, options -> {});
    }

    /**
     * Estimates the cost of a call (a dry run), without running it.
     *
     * @param graph a graph or a registered graph
     * @param types the dtypes and shapes of leaves
     * @param options sets options
     * @return a future of the estimates
     */
    public CompletableFuture<PlanAnswer> plan(
        Computable graph, Map<Node, TensorType> types, Consumer<PlanOptions> options) {
        Asked asked = stated(new PlanOptions(), options).asked;
        asked.types = Optional.of(types);
        return compute("plan", graph, asked, PlanAnswer::new);
    }

    /**
     * Returns the gradient as a graph, without running anything.
     *
     * @param graph a graph or a registered graph
     * @param types the dtypes and shapes of leaves
     * @return a future of the graph and its gradient nodes
     */
    public CompletableFuture<DifferentiateAnswer> differentiate(Computable graph, Map<Node, TensorType> types) {
        return differentiate(graph, types, options -> {});
    }

    /**
     * Returns the gradient as a graph, without running anything.
     *
     * @param graph a graph or a registered graph
     * @param types the dtypes and shapes of leaves
     * @param options sets options
     * @return a future of the graph and its gradient nodes
     */
    public CompletableFuture<DifferentiateAnswer> differentiate(
        Computable graph, Map<Node, TensorType> types, Consumer<DifferentiateOptions> options) {
        Asked asked = stated(new DifferentiateOptions(), options).asked;
        asked.types = Optional.of(types);
        return compute("differentiate", graph, asked, DifferentiateAnswer::new);
    }

    /**
     * Returns a graph that the first call which uses it registers, within that call's timeout.
     *
     * @param graph the graph as it is now
     * @return the registered graph, on which you can make calls
     */
    public RegisteredGraph registerLater(Graph graph) {
        return new RegisteredGraph(graph, new RegisterOptions(), null);
    }

    /**
     * Registers a graph on the server.
     *
     * @param graph the graph as it is now
     * @return a future of the registered graph, on which you can make calls
     */
    public CompletableFuture<RegisteredGraph> register(Graph graph) {
        return register(graph, options -> {});
    }

    /**
     * Registers a graph on the server.
     *
     * @param graph the graph as it is now
     * @param options sets options
     * @return a future of the registered graph, on which you can make calls
     */
    public CompletableFuture<RegisteredGraph> register(Graph graph, Consumer<RegisterOptions> options) {
        return Running.call(settings, Optional.empty(), running -> {
            RegisteredGraph made = new RegisteredGraph(graph, stated(new RegisterOptions(), options), null);
            return made.registered(running).thenApply(known -> made).exceptionallyCompose(failure ->
                CompletableFuture.failedFuture(Exchange.explained(graph, false, failure)));
        });
    }

    /**
     * Stores a tensor on the server and returns a handle that calls accept in place of a tensor.
     *
     * @param name a name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param tensor the tensor to store
     * @return a future of its handle
     */
    public CompletableFuture<Resident> put(String name, Tensor tensor) {
        return put(name, tensor, options -> {});
    }

    /**
     * Stores a tensor on the server and returns a handle that calls accept in place of a tensor.
     *
     * @param name a name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param tensor the tensor to store
     * @param options sets options
     * @return a future of its handle
     */
    public CompletableFuture<Resident> put(String name, Tensor tensor, Consumer<PutOptions> options) {
        return once(() -> Request.putting(name, tensor, stated(new PutOptions(), options)), AsyncClient::handle);
    }

    /**
     * Downloads the current version of a tensor.
     *
     * @param name the name of a resident tensor
     * @return a future of its handle and elements
     */
    public CompletableFuture<ResidentTensor> get(String name) {
        return get(name, options -> {});
    }

    /**
     * Downloads the current version of a tensor.
     *
     * @param name the name of a resident tensor
     * @param options sets options
     * @return a future of its handle and elements
     */
    public CompletableFuture<ResidentTensor> get(String name, Consumer<GetOptions> options) {
        return once(() -> Request.getting(name, stated(new GetOptions(), options)), reply -> reply.tensor(name));
    }

    /**
     * Deletes a tensor from the server.
     *
     * @param name the name of a resident tensor
     * @return a future of the metadata of the deleted version
     */
    public CompletableFuture<Resident> delete(String name) {
        return delete(name, options -> {});
    }

    /**
     * Deletes a tensor from the server.
     *
     * @param name the name of a resident tensor
     * @param options sets options
     * @return a future of the metadata of the deleted version
     */
    public CompletableFuture<Resident> delete(String name, Consumer<DeleteOptions> options) {
        return once(
            () -> Request.deleting(Request.tensorPath(name), stated(new DeleteOptions(), options).ifMatch),
            AsyncClient::handle);
    }

    /**
     * Downloads a tensor if its version differs from a handle's.
     *
     * @param than the handle
     * @return a future of its handle and elements; empty if it is the same version
     */
    public CompletableFuture<Optional<ResidentTensor>> getIfChanged(Resident than) {
        GetOptions options = new GetOptions();
        options.ifNoneMatch = than.etag();
        return once(() -> Request.getting(than.name(), options), reply ->
            reply.status() == 304 ? Optional.empty() : Optional.of(reply.tensor(than.name())));
    }

    /**
     * Fetches a registered graph. Look up its nodes by name or id.
     *
     * @param id the hash of the graph
     * @return a future of the registered graph, on which you can make calls
     */
    public CompletableFuture<RegisteredGraph> registered(String id) {
        return once(() -> Request.reading(Request.graphPath(id)), reply -> RegisteredGraph.read(reply.object()));
    }

    /**
     * Deletes a registered graph from the server.
     *
     * @param id the hash of the graph
     * @return a future of the metadata of what was deleted
     */
    public CompletableFuture<GraphSummary> unregister(String id) {
        return once(() -> Request.deleting(Request.graphPath(id), ""), reply -> GraphSummary.read(reply.object()));
    }

    /**
     * Stores a model, and replaces the one with this name if there is one.
     *
     * @param name a name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param definition the definition of the model
     * @return a future of the stored model
     */
    public CompletableFuture<Model> putModel(String name, ModelDefinition definition) {
        return putModel(name, definition, options -> {});
    }

    /**
     * Stores a model, and replaces the one with this name if there is one.
     *
     * @param name a name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param definition the definition of the model
     * @param options sets options
     * @return a future of the stored model
     */
    public CompletableFuture<Model> putModel(
        String name, ModelDefinition definition, Consumer<PutModelOptions> options) {
        return once(
            () -> Request.puttingModel(name, definition, stated(new PutModelOptions(), options)),
            reply -> Model.read(reply.object()));
    }

    /**
     * Fetches the current version of a model.
     *
     * @param name the name of a model
     * @return a future of the model
     */
    public CompletableFuture<Model> model(String name) {
        return once(() -> Request.reading(Request.modelPath(name)), reply -> Model.read(reply.object()));
    }

    /**
     * Deletes a model. Its graph and tensors stay.
     *
     * @param name the name of a model
     * @return a future of the metadata of what was deleted
     */
    public CompletableFuture<Model> deleteModel(String name) {
        return deleteModel(name, options -> {});
    }

    /**
     * Deletes a model. Its graph and tensors stay.
     *
     * @param name the name of a model
     * @param options sets options
     * @return a future of the metadata of what was deleted
     */
    public CompletableFuture<Model> deleteModel(String name, Consumer<DeleteOptions> options) {
        return once(
            () -> Request.deleting(Request.modelPath(name), stated(new DeleteOptions(), options).ifMatch),
            reply -> Model.read(reply.object()));
    }

    /**
     * Fetches a page of the resident tensors, by name.
     *
     * @param options sets the size and the start of the page
     * @return a future of handles
     */
    public CompletableFuture<Page<Resident>> tensors(Consumer<ListOptions> options) {
        return page("tensors", options, Resident::read);
    }

    /**
     * Fetches a page of the registered graphs, in order of registration.
     *
     * @param options sets the size and the start of the page
     * @return a future of their metadata
     */
    public CompletableFuture<Page<GraphSummary>> graphs(Consumer<ListOptions> options) {
        return page("graphs", options, GraphSummary::read);
    }

    /**
     * Fetches a page of the models, by name.
     *
     * @param options sets the size and the start of the page
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
     * Returns the server's op catalogue.
     *
     * @return a future of the ops
     */
    public CompletableFuture<Catalogue> ops() {
        return once(() -> Request.reading("/v1/ops"), reply -> Catalogue.read(reply.object()));
    }

    @Override
    public String toString() {
        return "client of gradserve";
    }
}
