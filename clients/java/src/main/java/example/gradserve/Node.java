package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;

/**
 * A node of a graph: the handle under which it is an operand, is fed, and has its results looked up. Its methods are
 * the ops of which it is the first operand.
 *
 * <p>{@code plus}, {@code minus}, {@code times}, {@code div}, {@code rem} and {@code unaryMinus} are those that Kotlin
 * takes for its operators.
 */
public final class Node extends NodeOps {
    private static final StackWalker STACK = StackWalker.getInstance();
    private static final String PACKAGE = Node.class.getPackageName() + ".";

    private final Graph graph;
    private final int id;
    private final String op;
    private final int[] operands;
    private final ObjectNode attrs;
    private final Map<String, Tensor> tensors;
    private final String line;
    private String name = "";

    Node(Graph graph, int id, String op, int[] operands, ObjectNode attrs, Map<String, Tensor> tensors, String line) {
        this.graph = graph;
        this.id = id;
        this.op = op;
        this.operands = operands;
        this.attrs = attrs;
        this.tensors = tensors;
        this.line = line;
    }

    /** A node as messages name it. */
    static String told(Graph graph, int id, String op, String name) {
        String told = "node " + id + " (" + op + (name.isEmpty() ? ")" : ", '" + name + "')");
        return graph.isOfAFunction() ? told + " of " + graph.told() : told;
    }

    /** Where the program is that called the client, as {@code Train.java:12}. */
    static String callersLine() {
        return STACK.walk(frames -> frames.filter(frame -> !isOurs(frame.getClassName())).findFirst())
            .map(frame -> frame.getFileName() + ":" + frame.getLineNumber())
            .orElse("");
    }

    private static boolean isOurs(String className) {
        return className.startsWith(PACKAGE) && className.indexOf('.', PACKAGE.length()) < 0;
    }

    @Override
    Node append(String op, Attrs attrs, List<Node> operands) {
        return graph.append(op, attrs, operands);
    }

    /**
     * Gives the node a name, which is for messages and look-ups, and refers to nothing.
     *
     * @param name of 128 characters at most
     * @return this node
     */
    public Node named(String name) {
        this.name = name == null ? "" : name;
        return this;
    }

    /**
     * The graph that the node is of.
     *
     * @return a graph
     */
    public Graph graph() {
        return graph;
    }

    /**
     * The place of the node in the list of nodes.
     *
     * @return from 0 on
     */
    public int id() {
        return id;
    }

    /**
     * The node's op.
     *
     * @return its name
     */
    public String op() {
        return op;
    }

    /**
     * The node's name.
     *
     * @return empty where it has none
     */
    public String name() {
        return name;
    }

    /**
     * Where the program wrote the node.
     *
     * @return such as {@code Train.java:12}; empty for a node that came with an answer
     */
    public String line() {
        return line;
    }

    int[] operands() {
        return operands;
    }

    ObjectNode attrs() {
        return attrs;
    }

    Map<String, Tensor> tensors() {
        return tensors;
    }

    /**
     * The sum with another node.
     *
     * @param other of a shape that broadcasts
     * @return the node of {@link #add}
     */
    public Node plus(Node other) {
        return add(other);
    }

    /**
     * The sum with a number.
     *
     * @param number any that is finite
     * @return the node of {@link #addScalar}
     */
    public Node plus(double number) {
        return addScalar(number);
    }

    /**
     * The difference from another node.
     *
     * @param other of a shape that broadcasts
     * @return the node of {@link #sub}
     */
    public Node minus(Node other) {
        return sub(other);
    }

    /**
     * The difference from a number.
     *
     * @param number any that is finite
     * @return the node of {@link #subScalar}
     */
    public Node minus(double number) {
        return subScalar(number);
    }

    /**
     * The product with another node, element by element.
     *
     * @param other of a shape that broadcasts
     * @return the node of {@link #mul}
     */
    public Node times(Node other) {
        return mul(other);
    }

    /**
     * The product with a number.
     *
     * @param number any that is finite
     * @return the node of {@link #mulScalar}
     */
    public Node times(double number) {
        return mulScalar(number);
    }

    /**
     * The quotient by a number.
     *
     * @param number any that is finite
     * @return the node of {@link #divScalar}
     */
    public Node div(double number) {
        return divScalar(number);
    }

    /**
     * The power of a number.
     *
     * @param exponent any that is finite
     * @return the node of {@link #powScalar}
     */
    public Node pow(double exponent) {
        return powScalar(exponent);
    }

    /**
     * The remainder by another node.
     *
     * @param other of a shape that broadcasts
     * @return the node of {@link #mod}
     */
    public Node rem(Node other) {
        return mod(other);
    }

    /**
     * The negative.
     *
     * @return the node of {@link #neg}
     */
    public Node unaryMinus() {
        return neg();
    }

    /** The node as messages name it. */
    @Override
    public String toString() {
        return told(graph, id, op, name);
    }
}
