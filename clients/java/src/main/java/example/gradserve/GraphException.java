package example.gradserve;

/** The request is invalid or exceeds a limit: fix the graph or its feeds. */
public final class GraphException extends RefusalException {
    private static final long serialVersionUID = 1L;

    GraphException(Problem problem, String remark) {
        super(problem, remark);
    }
}
