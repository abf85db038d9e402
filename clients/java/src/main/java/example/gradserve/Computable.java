package example.gradserve;

/** What calls are made on: a graph, or one that the server keeps. */
public sealed interface Computable permits Graph, RegisteredGraph {
    /**
     * The graph itself.
     *
     * @return the one whose nodes calls are told
     */
    Graph graph();

    /**
     * How many of its first nodes belong to it.
     *
     * @return all of a graph, and of one that the server keeps those that it had
     */
    int nodeCount();
}
