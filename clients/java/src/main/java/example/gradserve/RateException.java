package example.gradserve;

/** For keys that have used up their rate: ask less often. */
public final class RateException extends RefusalException {
    private static final long serialVersionUID = 1L;

    RateException(Problem problem, String remark) {
        super(problem, remark);
    }
}
