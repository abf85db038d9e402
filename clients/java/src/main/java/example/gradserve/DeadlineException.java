package example.gradserve;

import java.time.Duration;
import java.util.Optional;

/**
 * For calls whose time was up, by the client's clock, or where there is a problem by the server's: ask less, or give
 * more.
 */
public final class DeadlineException extends GradserveException {
    private static final long serialVersionUID = 1L;
    private final transient Problem problem;

    DeadlineException(Duration limit) {
        super("no answer within " + limit.toMillis() + " ms", null);
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
