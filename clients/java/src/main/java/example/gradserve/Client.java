package example.gradserve;

import static example.gradserve.Failures.joined;

import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * A connection to a server, which threads may share. It need not be closed.
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
 * <p>Every call fails with a {@link GradserveException}. An interrupt of a thread that waits ends the call.
 */
public final class Client {
    /** That of this client, and of the server that it came with. */
    public static final String VERSION = "0.1.0";

    private final AsyncClient async;

    /**
     * A client with the usual settings.
     *
     * @param url the server's, such as {@code http://127.0.0.1:8000}
     * @throws InputException for what cannot be a URL
     */
    public Client(String url) {
        this(new AsyncClient(url));
    }

    Client(AsyncClient async) {
        this.async = async;
    }

    /**
     * What makes a client with settings of its own.
     *
     * @param url the server's, such as {@code http://127.0.0.1:8000}
     * @return a builder
     */
    public static ClientBuilder builder(String url) {
        return new ClientBuilder(url);
    }

    /**
     * The same client, whose calls are futures.
     *
     * @return one that shares the connections
     */
    public AsyncClient async() {
        return async;
    }

    /**
     * Values of nodes, of the last one unless stated.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return the values
     */
    public ForwardAnswer forward(Computable graph, Map<Node, ? extends Value> feeds) {
        return forward(graph, feeds, options -> {});
    }

    /**
     * Values of nodes, of the last one unless stated.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return the values
     */
    public ForwardAnswer forward(Computable graph, Map<Node, ? extends Value> feeds, Consumer<ForwardOptions> options) {
        return joined(async.forward(graph, feeds, options));
    }

    /**
     * Values, and the gradients of one node.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return values and gradients
     */
    public GradientsAnswer gradients(Computable graph, Map<Node, ? extends Value> feeds) {
        return gradients(graph, feeds, options -> {});
    }

    /**
     * Values, and the gradients of one node.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return values and gradients
     */
    public GradientsAnswer gradients(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<GradientsOptions> options) {
        return joined(async.gradients(graph, feeds, options));
    }

    /**
     * Cotangents of outputs times the Jacobian.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param cotangents one for each output
     * @return values, and gradients that the cotangents weight
     */
    public GradientsAnswer vjp(
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
     * @return values, and gradients that the cotangents weight
     */
    public GradientsAnswer vjp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> cotangents,
        Consumer<VjpOptions> options) {
        return joined(async.vjp(graph, feeds, cotangents, options));
    }

    /**
     * The Jacobian times tangents of leaves; others stay.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param tangents of leaves
     * @return values, and their derivatives along the tangents
     */
    public JvpAnswer jvp(Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> tangents) {
        return jvp(graph, feeds, tangents, options -> {});
    }

    /**
     * The Jacobian times tangents of leaves; others stay.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param tangents of leaves
     * @param options states what is optional
     * @return values, and their derivatives along the tangents
     */
    public JvpAnswer jvp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> tangents,
        Consumer<JvpOptions> options) {
        return joined(async.jvp(graph, feeds, tangents, options));
    }

    /**
     * Whole Jacobians, a block for each output and node that it is differentiated by.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return values and Jacobians
     */
    public JacobianAnswer jacobian(Computable graph, Map<Node, ? extends Value> feeds) {
        return jacobian(graph, feeds, options -> {});
    }

    /**
     * Whole Jacobians, a block for each output and node that it is differentiated by.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return values and Jacobians
     */
    public JacobianAnswer jacobian(
        Computable graph, Map<Node, ? extends Value> feeds, Consumer<JacobianOptions> options) {
        return joined(async.jacobian(graph, feeds, options));
    }

    /**
     * The Hessian times vectors, exactly.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param vectors one for each node that it is differentiated by
     * @return values, gradients and products
     */
    public HvpAnswer hvp(Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> vectors) {
        return hvp(graph, feeds, vectors, options -> {});
    }

    /**
     * The Hessian times vectors, exactly.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param vectors one for each node that it is differentiated by
     * @param options states what is optional
     * @return values, gradients and products
     */
    public HvpAnswer hvp(
        Computable graph, Map<Node, ? extends Value> feeds, Map<Node, ? extends Value> vectors,
        Consumer<HvpOptions> options) {
        return joined(async.hvp(graph, feeds, vectors, options));
    }

    /**
     * Whole Hessians, a block for each pair of nodes that it is differentiated by.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return values, gradients and Hessians
     */
    public HessianAnswer hessian(Computable graph, Map<Node, ? extends Value> feeds) {
        return hessian(graph, feeds, options -> {});
    }

    /**
     * Whole Hessians, a block for each pair of nodes that it is differentiated by.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return values, gradients and Hessians
     */
    public HessianAnswer hessian(Computable graph, Map<Node, ? extends Value> feeds, Consumer<HessianOptions> options) {
        return joined(async.hessian(graph, feeds, options));
    }

    /**
     * One graph on many examples: values and gradients of each.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return values and gradients, all with a leading axis
     */
    public GradientsAnswer batch(Computable graph, Map<Node, ? extends Value> feeds) {
        return batch(graph, feeds, options -> {});
    }

    /**
     * One graph on many examples: values and gradients of each.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return values and gradients, all with a leading axis
     */
    public GradientsAnswer batch(Computable graph, Map<Node, ? extends Value> feeds, Consumer<BatchOptions> options) {
        return joined(async.batch(graph, feeds, options));
    }

    /**
     * Compares gradients with central differences.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @return how far apart they are
     */
    public CheckAnswer check(Computable graph, Map<Node, ? extends Value> feeds) {
        return check(graph, feeds, options -> {});
    }

    /**
     * Compares gradients with central differences.
     *
     * @param graph a graph, or one that the server keeps
     * @param feeds what each leaf is fed
     * @param options states what is optional
     * @return how far apart they are
     */
    public CheckAnswer check(Computable graph, Map<Node, ? extends Value> feeds, Consumer<CheckOptions> options) {
        return joined(async.check(graph, feeds, options));
    }

    /**
     * Says what a call would take. Nothing is run.
     *
     * @param graph a graph, or one that the server keeps
     * @param types what each leaf would be fed
     * @return a forecast
     */
    public PlanAnswer plan(Computable graph, Map<Node, TensorType> types) {
        return plan(graph, types, options -> {});
    }

    /**
     * Says what a call would take. Nothing is run.
     *
     * @param graph a graph, or one that the server keeps
     * @param types what each leaf would be fed
     * @param options states what is optional
     * @return a forecast
     */
    public PlanAnswer plan(Computable graph, Map<Node, TensorType> types, Consumer<PlanOptions> options) {
        return joined(async.plan(graph, types, options));
    }

    /**
     * The gradient as a graph. Nothing is run.
     *
     * @param graph a graph, or one that the server keeps
     * @param types what each leaf would be fed
     * @return the graph, and which of its nodes are gradients
     */
    public DifferentiateAnswer differentiate(Computable graph, Map<Node, TensorType> types) {
        return differentiate(graph, types, options -> {});
    }

    /**
     * The gradient as a graph. Nothing is run.
     *
     * @param graph a graph, or one that the server keeps
     * @param types what each leaf would be fed
     * @param options states what is optional
     * @return the graph, and which of its nodes are gradients
     */
    public DifferentiateAnswer differentiate(
        Computable graph, Map<Node, TensorType> types, Consumer<DifferentiateOptions> options) {
        return joined(async.differentiate(graph, types, options));
    }

    /**
     * A graph that the first call which needs it registers, within its own time.
     *
     * @param graph as it is now
     * @return the graph, on which calls may be made
     */
    public RegisteredGraph registerLater(Graph graph) {
        return async.registerLater(graph);
    }

    /**
     * Has the server keep a graph.
     *
     * @param graph as it is now
     * @return the graph, on which calls may be made
     */
    public RegisteredGraph register(Graph graph) {
        return register(graph, options -> {});
    }

    /**
     * Has the server keep a graph.
     *
     * @param graph as it is now
     * @param options states what is optional
     * @return the graph, on which calls may be made
     */
    public RegisteredGraph register(Graph graph, Consumer<RegisterOptions> options) {
        return joined(async.register(graph, options));
    }

    /**
     * Has the server keep a tensor, which calls may name from then on.
     *
     * @param name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param tensor what is to be kept
     * @return its handle
     */
    public Resident put(String name, Tensor tensor) {
        return put(name, tensor, options -> {});
    }

    /**
     * Has the server keep a tensor, which calls may name from then on.
     *
     * @param name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param tensor what is to be kept
     * @param options states what is optional
     * @return its handle
     */
    public Resident put(String name, Tensor tensor, Consumer<PutOptions> options) {
        return joined(async.put(name, tensor, options));
    }

    /**
     * A tensor that the server keeps, as it is now.
     *
     * @param name of a resident tensor
     * @return its handle and elements
     */
    public ResidentTensor get(String name) {
        return get(name, options -> {});
    }

    /**
     * A tensor that the server keeps, as it is now.
     *
     * @param name of a resident tensor
     * @param options states what is optional
     * @return its handle and elements
     */
    public ResidentTensor get(String name, Consumer<GetOptions> options) {
        return joined(async.get(name, options));
    }

    /**
     * Has the server keep a tensor no more.
     *
     * @param name of a resident tensor
     * @return the handle of what there was
     */
    public Resident delete(String name) {
        return delete(name, options -> {});
    }

    /**
     * Has the server keep a tensor no more.
     *
     * @param name of a resident tensor
     * @param options states what is optional
     * @return the handle of what there was
     */
    public Resident delete(String name, Consumer<DeleteOptions> options) {
        return joined(async.delete(name, options));
    }

    /**
     * A tensor that the server keeps, where it is another version by now than this one.
     *
     * @param than a handle
     * @return its handle and elements; empty where it is the same version
     */
    public Optional<ResidentTensor> getIfChanged(Resident than) {
        return joined(async.getIfChanged(than));
    }

    /**
     * A graph that the server keeps already. Its nodes are found by their names and ids.
     *
     * @param id its hash
     * @return the graph, on which calls may be made
     */
    public RegisteredGraph registered(String id) {
        return joined(async.registered(id));
    }

    /**
     * Has the server forget a graph.
     *
     * @param id its hash
     * @return what there was
     */
    public GraphSummary unregister(String id) {
        return joined(async.unregister(id));
    }

    /**
     * Has the server keep a model, in place of the one of this name, if there is one.
     *
     * @param name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param definition what it is to be
     * @return what is kept
     */
    public Model putModel(String name, ModelDefinition definition) {
        return putModel(name, definition, options -> {});
    }

    /**
     * Has the server keep a model, in place of the one of this name, if there is one.
     *
     * @param name of 1 to 128 letters, digits, dots, dashes and underscores
     * @param definition what it is to be
     * @param options states what is optional
     * @return what is kept
     */
    public Model putModel(String name, ModelDefinition definition, Consumer<PutModelOptions> options) {
        return joined(async.putModel(name, definition, options));
    }

    /**
     * A model that the server keeps, as it is now.
     *
     * @param name of a model
     * @return it
     */
    public Model model(String name) {
        return joined(async.model(name));
    }

    /**
     * Has the server keep a model no more. Its graph and its tensors stay.
     *
     * @param name of a model
     * @return what there was
     */
    public Model deleteModel(String name) {
        return deleteModel(name, options -> {});
    }

    /**
     * Has the server keep a model no more. Its graph and its tensors stay.
     *
     * @param name of a model
     * @param options states what is optional
     * @return what there was
     */
    public Model deleteModel(String name, Consumer<DeleteOptions> options) {
        return joined(async.deleteModel(name, options));
    }

    /**
     * All tensors that the server keeps, by name.
     *
     * @return handles, asked for page by page as they are taken
     */
    public Stream<Resident> tensors() {
        return tensors(options -> {});
    }

    /**
     * All tensors that the server keeps, by name.
     *
     * @param options states what is optional
     * @return handles, asked for page by page as they are taken
     */
    public Stream<Resident> tensors(Consumer<ListOptions> options) {
        return Listing.of(after -> joined(async.tensors(options.andThen(after))));
    }

    /**
     * All graphs that the server keeps, in the order in which they came.
     *
     * @return what is known of them, asked for page by page as they are taken
     */
    public Stream<GraphSummary> graphs() {
        return graphs(options -> {});
    }

    /**
     * All graphs that the server keeps, in the order in which they came.
     *
     * @param options states what is optional
     * @return what is known of them, asked for page by page as they are taken
     */
    public Stream<GraphSummary> graphs(Consumer<ListOptions> options) {
        return Listing.of(after -> joined(async.graphs(options.andThen(after))));
    }

    /**
     * All models that the server keeps, by name.
     *
     * @return models, asked for page by page as they are taken
     */
    public Stream<Model> models() {
        return models(options -> {});
    }

    /**
     * All models that the server keeps, by name.
     *
     * @param options states what is optional
     * @return models, asked for page by page as they are taken
     */
    public Stream<Model> models(Consumer<ListOptions> options) {
        return Listing.of(after -> joined(async.models(options.andThen(after))));
    }

    /**
     * The server's catalogue.
     *
     * @return the ops that it has
     */
    public Catalogue ops() {
        return joined(async.ops());
    }

    @Override
    public String toString() {
        return async.toString();
    }
}
