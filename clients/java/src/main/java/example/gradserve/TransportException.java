package example.gradserve;

/** For calls without an answer that could be read. */
public abstract sealed class TransportException extends GradserveException
    permits ConnectionException, MalformedAnswerException, AnswerTooLargeException {
    private static final long serialVersionUID = 1L;

    TransportException(String message, Throwable cause) {
        super(message, cause);
    }
}
