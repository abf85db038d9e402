package example.gradserve;

import java.time.Duration;
import java.util.Optional;

/** The attempts of one call, and the waits between them. */
final class Tries {
    private static final long FIRST_WAIT_MS = 500;
    private static final long LONGEST_WAIT_MS = 8000;

    private final Surroundings surroundings;
    private final Deadline deadline;
    private int left;
    private long waitMs = FIRST_WAIT_MS;
    private int deaths;

    Tries(int retries, Deadline deadline, Surroundings surroundings) {
        this.left = retries;
        this.deadline = deadline;
        this.surroundings = surroundings;
    }

    /**
     * Returns the time to wait before the next attempt. Fails with the error of the last attempt if there is no further
     * one.
     */
    Duration after(GradserveException failure) {
        Optional<Problem> problem = failure.problem();
        Duration jittered = Duration.ofMillis(Math.round(waitMs * (0.5 + surroundings.chance() / 2)));
        Duration wait = problem.flatMap(Problem::retryAfter)
            .filter(asked -> asked.compareTo(jittered) > 0)
            .orElse(jittered);
        if (problem.filter(each -> each.code().equals("worker_died")).isPresent()) {
            deaths++;
        }
        if (left == 0 || deaths > 1 || !isPassing(failure, problem) || !deadline.admits(wait)) {
            throw failure;
        }
        left--;
        waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
        return wait;
    }

    /** Returns whether the same request may succeed later. */
    private static boolean isPassing(GradserveException failure, Optional<Problem> problem) {
        return problem.map(each -> switch (each.status()) {
            case 408, 429, 503 -> true;
            default -> each.code().equals("conflict") && each.retryAfter().isPresent();
        }).orElse(failure instanceof ConnectionException);
    }
}
