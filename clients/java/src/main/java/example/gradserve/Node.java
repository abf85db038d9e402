package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Map;

/**
 * A node of a graph: a handle to use as an operand, as a key of feeds, and to look up results. It has the ops whose
 * first operand it is as methods.
 *
 * <p>{@code plus}, {@code minus}, {@code times}, {@code div}, {@code rem} and {@code unaryMinus} have the names that
 * Kotlin maps to operators.
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

    /** Returns a node as messages name it. */
    static String told(Graph graph, int id, String op, String name) {
        String told = "node " + id + " (" + op + (name.isEmpty() ? ")" : ", '" + name + "')");
        return graph.isOfAFunction() ? told + " of " + graph.told() : told;
    }

    /** Returns the line of the program that called the client, such as {@code Train.java:12}. */
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
     * Gives the node a name, for messages and lookups.
     *
     * @param name a name of at most 128 characters
     * @return this node
     */
    public Node named(String name) {
        this.name = name == null ? "" : name;
        return this;
    }

    /**
     * Returns the graph of the node.
     *
     * @return a graph
     */
    public Graph graph() {
        return graph;
    }

    /**
     * Returns the position of the node in the graph.
     *
     * @return a number from 0
     */
    public int id() {
        return id;
    }

    /**
     * Returns the node's op.
     *
     * @return its name
     */
    public String op() {
        return op;
    }

    /**
     * Returns the node's name.
     *
     * @return empty if it has none
     */
    public String name() {
        return name;
    }

    /**
     * Returns the line that created the node.
     *
     * @return a line such as {@code Train.java:12}; empty for a node of a response
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
     * Adds another node.
     *
     * @param other a node whose shape broadcasts
     * @return the node of {@link #add}
     */
    public Node plus(Node other) {
        return add(other);
    }

    /**
     * Adds a number.
     *
     * @param number a finite number
     * @return the node of {@link #addScalar}
     */
    public Node plus(double number) {
        return addScalar(number);
    }

    /**
     * Subtracts another node.
     *
     * @param other a node whose shape broadcasts
     * @return the node of {@link #sub}
     */
    public Node minus(Node other) {
        return sub(other);
    }

    /**
     * Subtracts a number.
     *
     * @param number a finite number
     * @return the node of {@link #subScalar}
     */
    public Node minus(double number) {
        return subScalar(number);
    }

    /**
     * Multiplies by another node, element by element.
     *
     * @param other a node whose shape broadcasts
     * @return the node of {@link #mul}
     */
    public Node times(Node other) {
        return mul(other);
    }

    /**
     * Multiplies by a number.
     *
     * @param number a finite number
     * @return the node of {@link #mulScalar}
     */
    public Node times(double number) {
        return mulScalar(number);
    }

    /**
     * Divides by a number.
     *
     * @param number a finite number
     * @return the node of {@link #divScalar}
     */
    public Node div(double number) {
        return divScalar(number);
    }

    /**
     * Raises to the power of a number.
     *
     * @param exponent a finite number
     * @return the node of {@link #powScalar}
     */
    public Node pow(double exponent) {
        return powScalar(exponent);
    }

    /**
     * Computes the remainder of the division by another node.
     *
     * @param other a node whose shape broadcasts
     * @return the node of {@link #mod}
     */
    public Node rem(Node other) {
        return mod(other);
    }

    /**
     * Negates the node.
     *
     * @return the node of {@link #neg}
     */
    public Node unaryMinus() {
        return neg();
    }

    /** Returns the node as messages name it. */
    @Override
    public String toString() {
        return told(graph, id, op, name);
    }
}
