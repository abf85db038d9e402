package example.gradserve;

/** An internal error of the server: report it with its request id. */
public final class ServerException extends RefusalException {
    private static final long serialVersionUID = 1L;

    ServerException(Problem problem, String remark) {
        super(problem, remark);
    }
}
