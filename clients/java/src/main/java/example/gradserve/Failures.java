package example.gradserve;

import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

/** Failures of futures. */
final class Failures {
    private Failures() {}

    /** Unwraps the failure of an earlier stage. */
    static Throwable cause(Throwable failure) {
        return failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
    }

    /**
     * Waits for the value of a future. Exceptions get the stack of this thread, and an interrupt cancels the future.
     */
    static <T> T joined(CompletableFuture<T> future) {
        try {
            return future.get();
        } catch (InterruptedException interrupted) {
            future.cancel(true);
            Thread.currentThread().interrupt();
            throw new CallInterruptedException(interrupted);
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof GradserveException failure) {
                failure.fillInStackTrace();
                throw failure;
            }
            throw new IllegalStateException("a call failed with an unexpected exception", failed.getCause());
        } catch (CancellationException unreachable) {
            throw new IllegalStateException("the future of a blocking call was cancelled", unreachable);
        }
    }
}
