package example.gradserve;

/** The response is missing or cannot be read. */
public abstract sealed class TransportException extends GradserveException
    permits ConnectionException, MalformedAnswerException, AnswerTooLargeException {
    private static final long serialVersionUID = 1L;

    TransportException(String message, Throwable cause) {
        super(message, cause);
    }
}
