package example.gradserve;

import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;

/** A call in progress. Its steps end with it: at its deadline, or when its future is cancelled. */
final class Running {
    /** The shortest timeout of an attempt that has begun, because the server may have done the work already. */
    private static final Duration LEAST = Duration.ofMillis(50);

    final Settings settings;
    final Deadline deadline;
    private final Set<CompletableFuture<?>> steps = ConcurrentHashMap.newKeySet();
    private volatile boolean isEnded;

    private Running(Settings settings, Duration limit) {
        this.settings = settings;
        this.deadline = new Deadline(limit, settings.surroundings());
    }

    /** Returns the result of a call. Cancelling it cancels the call's steps. */
    static <T> CompletableFuture<T> call(
        Settings settings, Optional<Duration> limit, Function<Running, CompletableFuture<T>> flow) {
        try {
            Running running = new Running(settings, limit.orElse(settings.timeout()));
            CompletableFuture<T> outcome = flow.apply(running).copy();
            outcome.whenComplete((value, failure) -> running.end());
            return outcome;
        } catch (GradserveException refused) {
            return CompletableFuture.failedFuture(refused);
        }
    }

    private void end() {
        isEnded = true;
        steps.forEach(step -> step.cancel(true));
    }

    CompletableFuture<Reply> send(Request request) {
        return step(settings.transport().send(request, deadline.left()));
    }

    CompletableFuture<Void> pause(Duration time) {
        return step(settings.surroundings().pause(time));
    }

    /** Ties a future to the call: it ends with the call. */
    <T> CompletableFuture<T> step(CompletableFuture<T> work) {
        CompletableFuture<T> step = new CompletableFuture<>();
        work.whenComplete((value, failure) -> {
            if (failure == null) {
                step.complete(value);
            } else {
                step.completeExceptionally(Failures.cause(failure));
            }
        });
        deadline.remaining().ifPresent(left ->
            step.orTimeout(left.compareTo(LEAST) < 0 ? LEAST.toNanos() : left.toNanos(), TimeUnit.NANOSECONDS));
        steps.add(step);
        step.whenComplete((value, failure) -> {
            steps.remove(step);
            work.cancel(true);
        });
        if (isEnded) {
            step.cancel(true);
        }
        return step.exceptionallyCompose(failure -> CompletableFuture.failedFuture(
            Failures.cause(failure) instanceof TimeoutException ? deadline.passed() : failure));
    }
}
