package example.gradserve;

/** The server is busy or shutting down: retry later. */
public final class OverloadException extends RefusalException {
    private static final long serialVersionUID = 1L;

    OverloadException(Problem problem, String remark) {
        super(problem, remark);
    }
}
