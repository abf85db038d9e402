package example.gradserve;

/** For servers that are busy, or about to stop: ask later. */
public final class OverloadException extends RefusalException {
    private static final long serialVersionUID = 1L;

    OverloadException(Problem problem, String remark) {
        super(problem, remark);
    }
}
