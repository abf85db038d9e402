package example.gradserve;

/** For keys that are missing, unknown, or not allowed this: get another. */
public final class AuthenticationException extends RefusalException {
    private static final long serialVersionUID = 1L;

    AuthenticationException(Problem problem, String remark) {
        super(problem, remark);
    }
}
