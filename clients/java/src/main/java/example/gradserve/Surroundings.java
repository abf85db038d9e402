package example.gradserve;

import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** A client's environment except the network: clock, randomness and keys. Tests replace it. */
public interface Surroundings {
    /**
     * Returns the time of the clock for deadlines.
     *
     * @return nanoseconds since an arbitrary moment
     */
    default long nanoTime() {
        return System.nanoTime();
    }

    /**
     * Waits.
     *
     * @param time how long to wait
     * @return a future that completes after this time
     */
    default CompletableFuture<Void> pause(Duration time) {
        return new CompletableFuture<Void>().completeOnTimeout(null, time.toNanos(), TimeUnit.NANOSECONDS);
    }

    /**
     * Returns a random number.
     *
     * @return a number from 0 to 1
     */
    default double chance() {
        return ThreadLocalRandom.current().nextDouble();
    }

    /**
     * Returns an idempotency key.
     *
     * @return a new unique key
     */
    default String newKey() {
        return UUID.randomUUID().toString();
    }
}
