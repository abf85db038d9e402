package example.gradserve;

/** For what somebody else has written meanwhile, or needs it: read again, then write. */
public final class ConditionException extends RefusalException {
    private static final long serialVersionUID = 1L;

    ConditionException(Problem problem, String remark) {
        super(problem, remark);
    }
}
