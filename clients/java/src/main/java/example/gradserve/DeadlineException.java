package example.gradserve;

import java.time.Duration;
import java.util.Optional;

/**
 * The timeout expired, on the client or, if there is a problem report, on the server: request less, or raise the
 * timeout.
 */
public final class DeadlineException extends GradserveException {
    private static final long serialVersionUID = 1L;
    private final transient Problem problem;

    DeadlineException(Duration limit) {
        super("no response within " + limit.toMillis() + " ms", null);
        problem = null;
    }

    DeadlineException(Problem problem, String remark) {
        super(RefusalException.told(problem, remark), null);
        this.problem = problem;
    }

    @Override
    public Optional<Problem> problem() {
        return Optional.ofNullable(problem);
    }
}
