package example.gradserve;

/** The target of a call: a graph or a registered graph. */
public sealed interface Computable permits Graph, RegisteredGraph {
    /**
     * Returns the graph itself.
     *
     * @return the graph whose nodes are passed to calls
     */
    Graph graph();

    /**
     * Returns how many of its first nodes belong to it.
     *
     * @return all nodes of a graph; for a registered graph, those at the time of registration
     */
    int nodeCount();
}
