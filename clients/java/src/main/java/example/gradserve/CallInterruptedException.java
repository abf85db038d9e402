package example.gradserve;

/**
 * The call was aborted because its thread was interrupted. The thread's interrupt status is set. The server may still
 * have stored what the request stores.
 */
public final class CallInterruptedException extends GradserveException {
    private static final long serialVersionUID = 1L;

    CallInterruptedException(InterruptedException cause) {
        super("the thread was interrupted during a call", cause);
    }
}
