package example.gradserve;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.function.Function;

/**
 * A computation graph. Every method for an op appends a node and returns its handle, which has the other ops as
 * methods.
 *
 * <p>The body of a {@linkplain #function function} is also a graph, which is sent with the enclosing one.
 *
 * <p>One thread at a time can build a graph. Any number can then make calls with it.
 */
public final class Graph extends GraphOps implements Computable {
    private final OptionalInt opset;
    private final List<Node> nodes = new ArrayList<>();
    private final List<GraphFunction> functions = new ArrayList<>();
    /** The enclosing graph if this is the body of a function; null for a graph itself. */
    private final Graph around;
    private final String functionName;
    private boolean isComplete;

    /** Creates a graph without nodes. The client sends the lowest opset that has everything the graph uses. */
    public Graph() {
        this(OptionalInt.empty(), null, "");
    }

    /**
     * Creates a graph without nodes.
     *
     * @param opset the version of the op set
     */
    public Graph(int opset) {
        this(OptionalInt.of(opset), null, "");
    }

    private Graph(OptionalInt opset, Graph around, String functionName) {
        this.opset = opset;
        this.around = around;
        this.functionName = functionName == null ? "" : functionName;
    }

    /**
     * Adds a function that ops such as {@code scan} run. The body receives a graph of its own, whose inputs are the
     * parameters, in order. It cannot use nodes of other graphs. It can use functions that were added before it, and
     * define functions itself.
     *
     * @param name a label for messages; empty for none
     * @param body appends the nodes of the function to its own graph, and returns the outputs, which may repeat
     * @return a function to pass to the ops that run it
     * @throws InputException if an output is not a node of the function
     */
    public GraphFunction function(String name, Function<? super Graph, ? extends List<Node>> body) {
        Graph written = new Graph(OptionalInt.empty(), whole(), name);
        return written.complete(body.apply(written));
    }

    /**
     * Adds a function without a name.
     *
     * @param body appends the nodes of the function to its own graph, and returns the outputs, which may repeat
     * @return a function to pass to the ops that run it
     * @throws InputException if an output is not a node of the function
     */
    public GraphFunction function(Function<? super Graph, ? extends List<Node>> body) {
        return function("", body);
    }

    /** Returns the function with this body. */
    private GraphFunction complete(List<Node> outputs) {
        try {
            outputs.forEach(this::owned);
        } catch (InputException wrong) {
            throw new InputException("an output of " + told() + ": " + wrong.getMessage());
        }
        isComplete = true;
        GraphFunction made = new GraphFunction(around.functions.size(), this, List.copyOf(outputs));
        around.functions.add(made);
        return made;
    }

    /** Returns the graph itself, or the one that encloses a function. */
    private Graph whole() {
        return around == null ? this : around;
    }

    boolean isOfAFunction() {
        return around != null;
    }

    String functionName() {
        return functionName;
    }

    /** Returns the graph as messages name it. */
    String told() {
        if (around == null) {
            return "the graph";
        }
        return functionName.isEmpty() ? "a function" : "the function '" + functionName + "'";
    }

    /**
     * Returns the functions, which ops of the graph and of later functions can run.
     *
     * @return a view, by index
     */
    public List<GraphFunction> functions() {
        return Collections.unmodifiableList(whole().functions);
    }

    /**
     * Appends any op by name, including ops that are newer than this client.
     *
     * @param op the name of the op
     * @param operands earlier nodes
     * @param attrs attributes by name: numbers, booleans, strings, dtypes, tensors, functions, and lists and arrays of
     *     JSON values
     * @return the node
     * @throws InputException for a node of another graph, and for an invalid attribute
     */
    public Node op(String op, List<Node> operands, Map<String, ?> attrs) {
        return op(op, operands, attrs, Node.callersLine());
    }

    private Node op(String op, List<Node> operands, Map<String, ?> attrs, String line) {
        String told = Node.told(this, nodes.size(), op, "");
        try {
            if (isComplete) {
                throw new InputException("the function is complete");
            }
            int[] ids = operands.stream().mapToInt(operand -> owned(operand).id()).toArray();
            ObjectNode plain = Json.object();
            Map<String, Tensor> tensors = new LinkedHashMap<>();
            attrs.forEach((name, value) -> {
                if (value instanceof Tensor tensor) {
                    tensors.put(name, tensor);
                } else if (value instanceof GraphFunction function) {
                    plain.put(name, owned(function).index());
                } else if (value != null) {
                    plain.set(name, Json.plain(value));
                }
            });
            Node node = new Node(this, nodes.size(), op, ids, plain, tensors, line);
            nodes.add(node);
            return node;
        } catch (InputException wrong) {
            throw new InputException(told + ": " + wrong.getMessage());
        }
    }

    @Override
    Node append(String op, Attrs attrs, List<Node> operands) {
        int count = operands.size();
        while (count > 0 && operands.get(count - 1) == null) {
            count--;
        }
        return op(op, operands.subList(0, count), attrs.stated);
    }

    /** Returns the node. Fails if it belongs to another graph. */
    Node owned(Node node) {
        if (node == null) {
            throw new InputException("the node is null");
        }
        if (node.graph() != this) {
            throw new InputException(node + whereElse(node.graph()));
        }
        return node;
    }

    private String whereElse(Graph other) {
        if (other.whole() != whole()) {
            return " belongs to another graph";
        }
        return around == null
            ? " is inside a function, and only the function's results can be used outside it"
            : " is outside this function, which can use only the operands passed to it";
    }

    /** Returns the function. Fails if it belongs to another graph. */
    private GraphFunction owned(GraphFunction function) {
        if (function.body().whole() != whole()) {
            throw new InputException(function + " belongs to another graph");
        }
        return function;
    }

    /**
     * Returns the opset that was set for the graph.
     *
     * @return empty if none was set: the client then sends the lowest opset that has everything the graph uses
     */
    public OptionalInt opset() {
        return opset;
    }

    /**
     * Returns all nodes by id.
     *
     * @return a view
     */
    public List<Node> nodes() {
        return Collections.unmodifiableList(nodes);
    }

    /**
     * Returns the node with an id.
     *
     * @param id the position of the node in the graph
     * @return the node
     * @throws InputException if there is none
     */
    public Node node(int id) {
        if (id < 0 || id >= nodes.size()) {
            throw new InputException("the graph has no node " + id + " (number of nodes: " + nodes.size() + ")");
        }
        return nodes.get(id);
    }

    /**
     * Returns the node with a name.
     *
     * @param name a name that was set with {@link Node#named named}
     * @return the node
     * @throws InputException if there is none, or several
     */
    public Node node(String name) {
        List<Node> found = nodes.stream().filter(node -> node.name().equals(name) && !name.isEmpty()).toList();
        if (found.size() != 1) {
            throw new InputException(found.isEmpty()
                ? "the graph has no node named '" + name + "'"
                : "the graph has " + found.size() + " nodes named '" + name + "': " + found);
        }
        return found.get(0);
    }

    @Override
    public Graph graph() {
        return this;
    }

    @Override
    public int nodeCount() {
        return nodes.size();
    }

    /**
     * Returns the graph in the JSON form of the API, with tensors as base64.
     *
     * @return the text of a JSON object
     */
    public String toJson() {
        Message message = new Message();
        message.fields.setAll(message.graph(this, nodes.size()));
        return message.toJson(Form.BASE64).toString();
    }

    /**
     * Reads a graph in the JSON form of the API. Ops can be unknown to this client.
     *
     * @param text a JSON object
     * @return the graph
     * @throws MalformedAnswerException if the text is invalid
     */
    public static Graph fromJson(String text) {
        return MalformedAnswerException.unless(() -> read(Json.object(text), Map.of()));
    }

    /** Reads the graph of a response. Tensors of nodes may be beside the JSON. */
    static Graph read(ObjectNode stated, Map<String, Tensor> beside) {
        Graph graph = Json.has(stated, "opset") ? new Graph(Json.whole(stated, "opset")) : new Graph();
        if (Json.has(stated, "functions")) {
            for (ObjectNode function : Json.objects(stated, "functions")) {
                graph.readFunction(function, beside);
            }
        }
        graph.readNodes(stated, beside, "");
        return graph;
    }

    private void readFunction(ObjectNode stated, Map<String, Tensor> beside) {
        Graph body = new Graph(OptionalInt.empty(), this, Json.textOr(stated, "name", ""));
        body.readNodes(stated, beside, "functions." + functions.size() + ".");
        body.complete(Arrays.stream(Json.ids(stated, "outputs")).mapToObj(body::node).toList());
    }

    private void readNodes(ObjectNode stated, Map<String, Tensor> beside, String within) {
        for (ObjectNode node : Json.objects(stated, "nodes")) {
            read(node, beside.get(within + "constants." + nodes.size()));
        }
    }

    private void read(ObjectNode stated, Tensor constant) {
        List<Node> operands = Arrays.stream(Json.ids(stated, "operands")).mapToObj(this::node).toList();
        Map<String, Object> attrs = new LinkedHashMap<>();
        if (Json.has(stated, "attrs")) {
            Json.member(stated, "attrs").properties()
                .forEach(each -> attrs.put(each.getKey(), received(each.getValue())));
        }
        if (constant != null) {
            attrs.put("value", constant);
        }
        op(Json.text(stated, "op"), operands, attrs, "").named(Json.textOr(stated, "name", ""));
    }

    private static Object received(JsonNode value) {
        boolean isTensor = value instanceof ObjectNode object && object.has("dtype") && object.has("shape");
        return isTensor ? TensorJson.decoded((ObjectNode) value) : value;
    }

    @Override
    public String toString() {
        return "graph of " + nodes.size() + " nodes";
    }
}
