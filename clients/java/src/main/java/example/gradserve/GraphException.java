package example.gradserve;

/** For requests that are wrong, or more than one may ask: mend the graph, or what it is fed. */
public final class GraphException extends RefusalException {
    private static final long serialVersionUID = 1L;

    GraphException(Problem problem, String remark) {
        super(problem, remark);
    }
}
