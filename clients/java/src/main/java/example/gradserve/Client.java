package example.gradserve;

import static example.gradserve.Failures.joined;

import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * A client of one server. Threads can share it. It need not be closed.
 *
 * <pre>{@code
 * Graph graph = new Graph();
 * Node x = graph.input("x");
 * Node w = graph.parameter("w");
 * x.times(w).tanh().sum();
 * Client client = new Client("http://127.0.0.1:8000");
 * GradientsAnswer answer = client.gradients(graph, Map.of(x, Tensor.vector(1, 2), w, Tensor.vector(0.5, 0.5)));
 * double[] gradient = answer.gradients().get(w).toDoubles();
 * }</pre>
 *
 * <p>Calls fail with a {@link GradserveException}. Interrupting a thread that waits for a call aborts the call.
 */
public final class Client {
    /** The version of the client, and of the server that it was released with. */
    public static final String VERSION = "0.1.0";

    private final AsyncClient async;

    /**
     * Creates a client with default settings.
     *
     * @param url the address of the server, such as {@code http://127.0.0.1:8000}
     * @throws InputException if the URL is invalid
     */
    public Client(String url) {
        this(new AsyncClient(url));
    }

    Client(AsyncClient async) {
        this.async = async;
    }

    /**
     * Returns a builder for a client with other settings.
     *
     * @param url the address of the server, such as {@code http://127.0.0.1:8000}
     * @return a builder
     */
    public static ClientBuilder builder(String url) {
        return new ClientBuilder(url);
    }

    /**
     * Returns this client with calls that return futures.
     *
     * @return a client that shares the connections
     */
    public AsyncClient async() {
        return async;
    }

    /**
     * Computes the values of nodes, by default of the last one.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return the values
     */
    public ForwardAnswer forward(Computable graph, Map<Node, ? extends Value> feeds) {
        return forward(graph, feeds, options -> {});
    }

    /**
     * Computes the values of nodes, by default of the last one.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
     * @return the values
     */
    public ForwardAnswer forward(Computable graph, Map<Node, ? extends Value> feeds, Consumer<ForwardOptions> options) {
        return joined(async.forward(graph, feeds, options));
    }

    /**
     * Computes values, and the gradients of one node.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return values and gradients
     */
    public GradientsAnswer gradients(Computable graph, Map<Node, ? extends Value> feeds) {
        return gradients(graph, feeds, options -> {});
    }

    /**
     * Computes values, and the gradients of one node.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
     * @return values and gradients
     */
    public GradientsAnswer gradients(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<GradientsOptions> options) {
        return joined(async.gradients(graph, feeds, options));
    }

    /**
     * Computes vector-Jacobian products.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param cotangents a cotangent for each output
     * @return values and vector-Jacobian products
     */
    public GradientsAnswer vjp(
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
     * @return values and vector-Jacobian products
     */
    public GradientsAnswer vjp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> cotangents,
        Consumer<VjpOptions> options) {
        return joined(async.vjp(graph, feeds, cotangents, options));
    }

    /**
     * Computes Jacobian-vector products.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param tangents tangents of leaves; leaves without a tangent are held constant
     * @return values and Jacobian-vector products
     */
    public JvpAnswer jvp(Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> tangents) {
        return jvp(graph, feeds, tangents, options -> {});
    }

    /**
     * Computes Jacobian-vector products.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param tangents tangents of leaves; leaves without a tangent are held constant
     * @param options sets options
     * @return values and Jacobian-vector products
     */
    public JvpAnswer jvp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> tangents,
        Consumer<JvpOptions> options) {
        return joined(async.jvp(graph, feeds, tangents, options));
    }

    /**
     * Computes full Jacobians, one block for each output and node of {@code wrt}.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return values and Jacobians
     */
    public JacobianAnswer jacobian(Computable graph, Map<Node, ? extends Value> feeds) {
        return jacobian(graph, feeds, options -> {});
    }

    /**
     * Computes full Jacobians, one block for each output and node of {@code wrt}.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
     * @return values and Jacobians
     */
    public JacobianAnswer jacobian(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<JacobianOptions> options) {
        return joined(async.jacobian(graph, feeds, options));
    }

    /**
     * Computes exact Hessian-vector products.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param vectors a vector for each node of {@code wrt}
     * @return values, gradients and products
     */
    public HvpAnswer hvp(Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> vectors) {
        return hvp(graph, feeds, vectors, options -> {});
    }

    /**
     * Computes exact Hessian-vector products.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param vectors a vector for each node of {@code wrt}
     * @param options sets options
     * @return values, gradients and products
     */
    public HvpAnswer hvp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> vectors,
        Consumer<HvpOptions> options) {
        return joined(async.hvp(graph, feeds, vectors, options));
    }

    /**
     * Computes full Hessians, one block for each pair of nodes of {@code wrt}.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return values, gradients and Hessians
     */
    public HessianAnswer hessian(Computable graph, Map<Node, ? extends Value> feeds) {
        return hessian(graph, feeds, options -> {});
    }

    /**
     * Computes full Hessians, one block for each pair of nodes of {@code wrt}, or one matrix with
     * {@link HessianLayout#MATRIX}.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
     * @return values, gradients and Hessians
     */
    public HessianAnswer hessian(Computable graph, Map<Node, ? extends Value> feeds, Consumer<HessianOptions> options) {
        return joined(async.hessian(graph, feeds, options));
    }

    /**
     * Runs one graph on many examples, and computes the values and gradients of each.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return values and gradients, all with a leading axis
     */
    public GradientsAnswer batch(Computable graph, Map<Node, ? extends Value> feeds) {
        return batch(graph, feeds, options -> {});
    }

    /**
     * Runs one graph on many examples, and computes the values and gradients of each.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
     * @return values and gradients, all with a leading axis
     */
    public GradientsAnswer batch(Computable graph, Map<Node, ? extends Value> feeds, Consumer<BatchOptions> options) {
        return joined(async.batch(graph, feeds, options));
    }

    /**
     * Compares gradients with central differences.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @return the result of the gradient check
     */
    public CheckAnswer check(Computable graph, Map<Node, ? extends Value> feeds) {
        return check(graph, feeds, options -> {});
    }

    /**
     * Compares gradients with central differences.
     *
     * @param graph a graph or a registered graph
     * @param feeds the values of leaves
     * @param options sets options
     * @return the result of the gradient check
     */
    public CheckAnswer check(Computable graph, Map<Node, ? extends Value> feeds, Consumer<CheckOptions> options) {
        return joined(async.check(graph, feeds, options));
    }

    /**
     * Estimates the cost of a call (a dry run), without running it.
     *
     * @param graph a graph or a registered graph
     * @param types the dtypes and shapes of leaves
     * @return the estimates
     */
    public PlanAnswer plan(Computable graph, Map<Node, TensorType> types) {
        return plan(graph, types, options -> {});
    }

    /**
     * Estimates the cost of a call (a dry run), without running it.
     *
     * @param graph a graph or a registered graph
     * @param types the dtypes and shapes of leaves
     * @param options sets options
     * @return the estimates
     */
    public PlanAnswer plan(Computable graph, Map<Node, TensorType> types, Consumer<PlanOptions> options) {
        return joined(async.plan(graph, types, options));
    }

    /**
     * Returns the gradient as a graph, without running anything.
     *
     * @param graph a graph or a registered graph
     * @param types the dtypes and shapes of leaves
     * @return the graph and its gradient nodes
     */
    public DifferentiateAnswer differentiate(Computable graph, Map<Node, TensorType> types) {
        return differentiate(graph, types, options -> {});
    }

    /**
     * Returns the gradient as a graph, without running anything.
     *
     * @param graph a graph or a registered graph
     * @param types the dtypes and shapes of leaves
     * @param options sets options
     * @return the graph and its gradient nodes
     */
    public DifferentiateAnswer differentiate(
        Computable graph, Map<Node, TensorType> types, Consumer<DifferentiateOptions> options) {
        return joined(async.differentiate(graph, types, options));
    }

    /**
     * Returns a graph that the first call which uses it registers, within that call's timeout.
     *
     * @param graph the graph as it is now
     * @return the registered graph, on which you can make calls
     */
    public RegisteredGraph registerLater(Graph graph) {
        return async.registerLater(graph);
    }

    /**
     * Registers a graph on the server.
     *
     * @param graph the graph as it is now
     * @return the registered graph, on which you can make calls
     */
    public RegisteredGraph register(Graph graph) {
        return register(graph, options -> {});
    }

    /**
     * Registers a graph on the server.
     *
     * @param graph the graph as it is now
     * @param options sets options
     * @return the registered graph, on which you can make calls
     */
    public RegisteredGraph register(Graph graph, Consumer<RegisterOptions> options) {
        return joined(async.register(graph, options));
    }

    /**
     * Stores a tensor on the server and returns a handle that calls accept in place of a tensor.
     *
     * @param name a name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param tensor the tensor to store
     * @return its handle
     */
    public Resident put(String name, Tensor tensor) {
        return put(name, tensor, options -> {});
    }

    /**
     * Stores a tensor on the server and returns a handle that calls accept in place of a tensor.
     *
     * @param name a name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param tensor the tensor to store
     * @param options sets options
     * @return its handle
     */
    public Resident put(String name, Tensor tensor, Consumer<PutOptions> options) {
        return joined(async.put(name, tensor, options));
    }

    /**
     * Downloads the current version of a tensor.
     *
     * @param name the name of a resident tensor
     * @return its handle and elements
     */
    public ResidentTensor get(String name) {
        return get(name, options -> {});
    }

    /**
     * Downloads the current version of a tensor.
     *
     * @param name the name of a resident tensor
     * @param options sets options
     * @return its handle and elements
     */
    public ResidentTensor get(String name, Consumer<GetOptions> options) {
        return joined(async.get(name, options));
    }

    /**
     * Deletes a tensor from the server.
     *
     * @param name the name of a resident tensor
     * @return the metadata of the deleted version
     */
    public Resident delete(String name) {
        return delete(name, options -> {});
    }

    /**
     * Deletes a tensor from the server.
     *
     * @param name the name of a resident tensor
     * @param options sets options
     * @return the metadata of the deleted version
     */
    public Resident delete(String name, Consumer<DeleteOptions> options) {
        return joined(async.delete(name, options));
    }

    /**
     * Downloads a tensor if its version differs from a handle's.
     *
     * @param than the handle
     * @return its handle and elements; empty if it is the same version
     */
    public Optional<ResidentTensor> getIfChanged(Resident than) {
        return joined(async.getIfChanged(than));
    }

    /**
     * Fetches a registered graph. Look up its nodes by name or id.
     *
     * @param id the hash of the graph
     * @return the registered graph, on which you can make calls
     */
    public RegisteredGraph registered(String id) {
        return joined(async.registered(id));
    }

    /**
     * Deletes a registered graph from the server.
     *
     * @param id the hash of the graph
     * @return the metadata of what was deleted
     */
    public GraphSummary unregister(String id) {
        return joined(async.unregister(id));
    }

    /**
     * Stores a model, and replaces the one with this name if there is one.
     *
     * @param name a name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param definition the definition of the model
     * @return the stored model
     */
    public Model putModel(String name, ModelDefinition definition) {
        return putModel(name, definition, options -> {});
    }

    /**
     * Stores a model, and replaces the one with this name if there is one.
     *
     * @param name a name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param definition the definition of the model
     * @param options sets options
     * @return the stored model
     */
    public Model putModel(String name, ModelDefinition definition, Consumer<PutModelOptions> options) {
        return joined(async.putModel(name, definition, options));
    }

    /**
     * Fetches the current version of a model.
     *
     * @param name the name of a model
     * @return the model
     */
    public Model model(String name) {
        return joined(async.model(name));
    }

    /**
     * Deletes a model. Its graph and tensors stay.
     *
     * @param name the name of a model
     * @return the metadata of what was deleted
     */
    public Model deleteModel(String name) {
        return deleteModel(name, options -> {});
    }

    /**
     * Deletes a model. Its graph and tensors stay.
     *
     * @param name the name of a model
     * @param options sets options
     * @return the metadata of what was deleted
     */
    public Model deleteModel(String name, Consumer<DeleteOptions> options) {
        return joined(async.deleteModel(name, options));
    }

    /**
     * Streams all resident tensors by name.
     *
     * @return handles, fetched page by page as they are consumed
     */
    public Stream<Resident> tensors() {
        return tensors(options -> {});
    }

    /**
     * Streams all resident tensors by name.
     *
     * @param options sets options
     * @return handles, fetched page by page as they are consumed
     */
    public Stream<Resident> tensors(Consumer<ListOptions> options) {
        return Listing.of(after -> joined(async.tensors(options.andThen(after))));
    }

    /**
     * Streams all registered graphs in order of registration.
     *
     * @return their metadata, fetched page by page as it is consumed
     */
    public Stream<GraphSummary> graphs() {
        return graphs(options -> {});
    }

    /**
     * Streams all registered graphs in order of registration.
     *
     * @param options sets options
     * @return their metadata, fetched page by page as it is consumed
     */
    public Stream<GraphSummary> graphs(Consumer<ListOptions> options) {
        return Listing.of(after -> joined(async.graphs(options.andThen(after))));
    }

    /**
     * Streams all models by name.
     *
     * @return models, fetched page by page as they are consumed
     */
    public Stream<Model> models() {
        return models(options -> {});
    }

    /**
     * Streams all models by name.
     *
     * @param options sets options
     * @return models, fetched page by page as they are consumed
     */
    public Stream<Model> models(Consumer<ListOptions> options) {
        return Listing.of(after -> joined(async.models(options.andThen(after))));
    }

    /**
     * Returns the server's op catalogue.
     *
     * @return the ops
     */
    public Catalogue ops() {
        return joined(async.ops());
    }

    @Override
    public String toString() {
        return async.toString();
    }
}
