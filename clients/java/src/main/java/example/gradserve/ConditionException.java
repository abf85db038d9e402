package example.gradserve;

/** Another client has written it, or it is in use: read again, then write. */
public final class ConditionException extends RefusalException {
    private static final long serialVersionUID = 1L;

    ConditionException(Problem problem, String remark) {
        super(problem, remark);
    }
}
