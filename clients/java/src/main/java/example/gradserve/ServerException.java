package example.gradserve;

/** For faults of the server's own: report it with its request id. */
public final class ServerException extends RefusalException {
    private static final long serialVersionUID = 1L;

    ServerException(Problem problem, String remark) {
        super(problem, remark);
    }
}
