package example.gradserve;

import java.util.List;

/** A function of a graph. Pass it to the ops that run it, such as {@code scan}. Created by {@link Graph#function}. */
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
     * Returns the index of the function in the graph.
     *
     * @return a number from 0
     */
    public int index() {
        return index;
    }

    /**
     * Returns the function's name, a label for messages.
     *
     * @return empty if it has none
     */
    public String name() {
        return body.functionName();
    }

    /**
     * Returns the function's own graph. Nothing can be appended to it.
     *
     * @return the nodes, with their own ids
     */
    public Graph body() {
        return body;
    }

    /**
     * Returns the parameters, in the order of the operands.
     *
     * @return the inputs of the body
     */
    public List<Node> parameters() {
        return body.nodes().stream().filter(node -> node.op().equals("input")).toList();
    }

    /**
     * Returns the outputs, in the order of the results.
     *
     * @return nodes of the body, which may repeat
     */
    public List<Node> outputs() {
        return outputs;
    }

    /** Returns the function as messages name it. */
    @Override
    public String toString() {
        return "function " + index + (name().isEmpty() ? "" : " ('" + name() + "')");
    }
}
