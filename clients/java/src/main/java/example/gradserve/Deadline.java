package example.gradserve;

import java.time.Duration;
import java.util.Optional;

/** When a call has to be over, all of its tries together; with a limit of zero it may take as long as it does. */
final class Deadline {
    private final Surroundings surroundings;
    private final Duration limit;
    private final long begin;

    Deadline(Duration limit, Surroundings surroundings) {
        this.surroundings = surroundings;
        this.limit = limit;
        this.begin = surroundings.nanoTime();
    }

    /** How much time there is, where there is an end. Fails where that has come. */
    Optional<Duration> left() {
        Optional<Duration> left = remaining();
        if (left.isPresent() && (left.get().isNegative() || left.get().isZero())) {
            throw passed();
        }
        return left;
    }

    /** Whether there is time left after a wait. */
    boolean admits(Duration wait) {
        return remaining().map(left -> wait.compareTo(left) < 0).orElse(true);
    }

    /** The same, below zero where the end has come. */
    Optional<Duration> remaining() {
        return limit.isZero() ? Optional.empty() : Optional.of(limit.minusNanos(surroundings.nanoTime() - begin));
    }

    DeadlineException passed() {
        return new DeadlineException(limit);
    }
}
