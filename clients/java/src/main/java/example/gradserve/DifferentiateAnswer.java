package example.gradserve;

import java.util.List;

/** The gradient as a graph. */
public final class DifferentiateAnswer extends Answer {
    private final Graph sent;
    private final Graph graph;
    private final Results<Node> gradients;
    private final List<Node> disconnected;

    DifferentiateAnswer(AnswerReader reader) {
        super(reader);
        sent = reader.graph;
        graph = reader.answeredGraph();
        gradients = reader.results("gradients", entry -> graph.node(Json.whole(entry, "gradient_node")));
        disconnected = reader.nodes("disconnected");
    }

    /**
     * Returns the graph. Its first nodes are those of the graph that was sent.
     *
     * @return a new graph
     */
    public Graph graph() {
        return graph;
    }

    /**
     * Returns the nodes of the graph that compute the gradients.
     *
     * @return gradient nodes by node of {@code wrt} in the graph that was sent
     */
    public Results<Node> gradients() {
        return gradients;
    }

    /**
     * Returns the nodes of {@code wrt}, in the graph that was sent, that have no path to the differentiated node.
     *
     * @return a subset of {@code wrt}
     */
    public List<Node> disconnected() {
        return disconnected;
    }

    /**
     * Returns the node of this graph that corresponds to a node of the graph that was sent.
     *
     * @param node a node of the graph that was sent
     * @return the corresponding node
     * @throws InputException for a node of another graph
     */
    public Node find(Node node) {
        return graph.node(sent.owned(node).id());
    }
}
