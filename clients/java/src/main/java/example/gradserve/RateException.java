package example.gradserve;

/** The API key has exceeded its rate limit: send fewer requests. */
public final class RateException extends RefusalException {
    private static final long serialVersionUID = 1L;

    RateException(Problem problem, String remark) {
        super(problem, remark);
    }
}
