package example.gradserve;

/** The response exceeds the size limit: request less, or see {@link ClientBuilder#maxResponseBytes}. */
public final class AnswerTooLargeException extends TransportException {
    private static final long serialVersionUID = 1L;

    AnswerTooLargeException() {
        super("the response exceeds the size limit (see maxResponseBytes)", null);
    }
}
