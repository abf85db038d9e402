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
     * The graph, whose first nodes are those that were sent.
     *
     * @return another than the one that was sent
     */
    public Graph graph() {
        return graph;
    }

    /**
     * The nodes of the graph that are gradients.
     *
     * @return by nodes that it was differentiated by, as they were sent
     */
    public Results<Node> gradients() {
        return gradients;
    }

    /**
     * The nodes, as they were sent, without a path to what was differentiated.
     *
     * @return some of those that it was differentiated by
     */
    public List<Node> disconnected() {
        return disconnected;
    }

    /**
     * What a node of the graph that was sent is in this one.
     *
     * @param node of the graph that was sent
     * @return its node here
     * @throws InputException for a node of yet another graph
     */
    public Node find(Node node) {
        return graph.node(sent.owned(node).id());
    }
}
