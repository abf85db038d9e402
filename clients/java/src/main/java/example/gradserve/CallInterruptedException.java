package example.gradserve;

/**
 * For calls that were given up since their thread was interrupted, which it still says. What keeps something may have
 * been kept.
 */
public final class CallInterruptedException extends GradserveException {
    private static final long serialVersionUID = 1L;

    CallInterruptedException(InterruptedException cause) {
        super("the thread was interrupted while a call was under way", cause);
    }
}
