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

/**
 * A computation graph. Every method that is an op appends a node and returns its handle, which has the other ops as
 * methods.
 *
 * <p>A graph is built by one thread at a time; when it is built, any number may call with it.
 */
public final class Graph extends GraphOps implements Computable {
    private final OptionalInt opset;
    private final List<Node> nodes = new ArrayList<>();

    /** A graph without nodes, which says by itself which set of ops it needs, where that is not the first. */
    public Graph() {
        this(OptionalInt.empty());
    }

    /**
     * A graph without nodes.
     *
     * @param opset the version of the set of ops
     */
    public Graph(int opset) {
        this(OptionalInt.of(opset));
    }

    private Graph(OptionalInt opset) {
        this.opset = opset;
    }

    /**
     * Appends any op by its name, also one that is newer than this client.
     *
     * @param op its name
     * @param operands earlier nodes
     * @param attrs attributes by their names: numbers, booleans, strings, dtypes, tensors, and lists and arrays of
     *     these
     * @return the node
     * @throws InputException for a node of another graph, and for what an attribute cannot be
     */
    public Node op(String op, List<Node> operands, Map<String, ?> attrs) {
        return op(op, operands, attrs, Node.callersLine());
    }

    private Node op(String op, List<Node> operands, Map<String, ?> attrs, String line) {
        String told = "node " + nodes.size() + " (" + op + ")";
        try {
            int[] ids = operands.stream().mapToInt(operand -> owned(operand).id()).toArray();
            ObjectNode plain = Json.object();
            Map<String, Tensor> tensors = new LinkedHashMap<>();
            attrs.forEach((name, value) -> {
                if (value instanceof Tensor tensor) {
                    tensors.put(name, tensor);
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

    /** The same node, which has to be one of this graph. */
    Node owned(Node node) {
        if (node == null) {
            throw new InputException("there is no node where one is expected");
        }
        if (node.graph() != this) {
            throw new InputException(node + " is a node of another graph");
        }
        return node;
    }

    /**
     * The version of the set of ops.
     *
     * @return empty where the program states none: then it is the first that has all that the graph is of
     */
    public OptionalInt opset() {
        return opset;
    }

    /**
     * All nodes, by id.
     *
     * @return a view
     */
    public List<Node> nodes() {
        return Collections.unmodifiableList(nodes);
    }

    /**
     * The node of an id.
     *
     * @param id its place in the list of nodes
     * @return the node
     * @throws InputException where there is none
     */
    public Node node(int id) {
        if (id < 0 || id >= nodes.size()) {
            throw new InputException("there is no node " + id + " in a graph of " + nodes.size());
        }
        return nodes.get(id);
    }

    /**
     * The node of a name.
     *
     * @param name what it is {@linkplain Node#named named}
     * @return the node
     * @throws InputException where there is none, or there are several
     */
    public Node node(String name) {
        List<Node> found = nodes.stream().filter(node -> node.name().equals(name) && !name.isEmpty()).toList();
        if (found.size() != 1) {
            throw new InputException(found.size() + " nodes are called '" + name + "', and not one: " + found);
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
     * The graph as it would be sent, its tensors in it as base64.
     *
     * @return the text of an object of JSON
     */
    public String toJson() {
        Message message = new Message();
        message.fields.setAll(message.graph(this, nodes.size()));
        return message.toJson(Form.BASE64).toString();
    }

    /**
     * The graph that the wire has in JSON, whatever its ops are.
     *
     * @param text an object of JSON
     * @return the graph
     * @throws MalformedAnswerException where it is none
     */
    public static Graph fromJson(String text) {
        return MalformedAnswerException.unless(() -> read(Json.object(text), Map.of()));
    }

    /** The graph of an answer. Tensors of nodes may lie beside it, by their ids. */
    static Graph read(ObjectNode stated, Map<Integer, Tensor> constants) {
        Graph graph =
            new Graph(Json.has(stated, "opset") ? OptionalInt.of(Json.whole(stated, "opset")) : OptionalInt.empty());
        for (ObjectNode node : Json.objects(stated, "nodes")) {
            graph.read(node, constants.get(graph.nodes.size()));
        }
        return graph;
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
