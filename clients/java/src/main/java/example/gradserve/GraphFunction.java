package example.gradserve;

import java.util.List;

/** A function of a graph, which is told to the ops that run it, such as {@code scan}. {@link Graph#function} makes it. */
public final class GraphFunction {
    private final int index;
    private final Graph body;
    private final List<Node> outputs;

    GraphFunction(int index, Graph body, List<Node> outputs) {
        this.index = index;
        this.body = body;
        this.outputs = outputs;
    }

    /**
     * The place of the function in the list of functions.
     *
     * @return from 0 on
     */
    public int index() {
        return index;
    }

    /**
     * The function's name, which is for messages.
     *
     * @return empty where it has none
     */
    public String name() {
        return body.functionName();
    }

    /**
     * What it was written as. Nothing can be appended any more.
     *
     * @return the nodes under ids of their own
     */
    public Graph body() {
        return body;
    }

    /**
     * What it takes, in the order of operands.
     *
     * @return its inputs
     */
    public List<Node> parameters() {
        return body.nodes().stream().filter(node -> node.op().equals("input")).toList();
    }

    /**
     * What it gives, in the order of results.
     *
     * @return nodes of the body, which may repeat
     */
    public List<Node> outputs() {
        return outputs;
    }

    /** The function as messages name it. */
    @Override
    public String toString() {
        return "function " + index + (name().isEmpty() ? "" : " ('" + name() + "')");
    }
}
