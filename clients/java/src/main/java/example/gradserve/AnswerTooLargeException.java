package example.gradserve;

/** For answers that are longer than may be read: ask for less, or see {@link ClientBuilder#maxResponseBytes}. */
public final class AnswerTooLargeException extends TransportException {
    private static final long serialVersionUID = 1L;

    AnswerTooLargeException() {
        super("the answer is longer than may be read (see maxResponseBytes)", null);
    }
}
