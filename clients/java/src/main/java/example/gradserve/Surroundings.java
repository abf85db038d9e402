package example.gradserve;

import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** What a client has of the world beside the network: clock, chance and keys, which tests hand in. */
public interface Surroundings {
    /**
     * The clock that deadlines are told by.
     *
     * @return nanoseconds since any moment
     */
    default long nanoTime() {
        return System.nanoTime();
    }

    /**
     * Has time pass.
     *
     * @param time how much
     * @return what is done when it has passed
     */
    default CompletableFuture<Void> pause(Duration time) {
        return new CompletableFuture<Void>().completeOnTimeout(null, time.toNanos(), TimeUnit.NANOSECONDS);
    }

    /**
     * Chance.
     *
     * @return from 0 to 1
     */
    default double chance() {
        return ThreadLocalRandom.current().nextDouble();
    }

    /**
     * A key of idempotency.
     *
     * @return one that nobody else has
     */
    default String newKey() {
        return UUID.randomUUID().toString();
    }
}
