package example.gradserve;

import java.time.Duration;
import java.util.Optional;

/** The time by which a call, with all its attempts, must finish. A limit of zero means none. */
final class Deadline {
    private final Surroundings surroundings;
    private final Duration limit;
    private final long begin;

    Deadline(Duration limit, Surroundings surroundings) {
        this.surroundings = surroundings;
        this.limit = limit;
        this.begin = surroundings.nanoTime();
    }

    /** Returns the remaining time, if there is a deadline. Fails if it has passed. */
    Optional<Duration> left() {
        Optional<Duration> left = remaining();
        if (left.isPresent() && (left.get().isNegative() || left.get().isZero())) {
            throw passed();
        }
        return left;
    }

    /** Returns whether time remains after a wait. */
    boolean admits(Duration wait) {
        return remaining().map(left -> wait.compareTo(left) < 0).orElse(true);
    }

    /** Returns the remaining time, negative if the deadline has passed. */
    Optional<Duration> remaining() {
        return limit.isZero() ? Optional.empty() : Optional.of(limit.minusNanos(surroundings.nanoTime() - begin));
    }

    DeadlineException passed() {
        return new DeadlineException(limit);
    }
}
