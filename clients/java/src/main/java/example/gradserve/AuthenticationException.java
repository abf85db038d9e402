package example.gradserve;

/** The API key is missing, unknown, or lacks the permission: use another key. */
public final class AuthenticationException extends RefusalException {
    private static final long serialVersionUID = 1L;

    AuthenticationException(Problem problem, String remark) {
        super(problem, remark);
    }
}
