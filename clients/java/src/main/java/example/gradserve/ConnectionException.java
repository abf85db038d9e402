package example.gradserve;

/**
 * For calls that got no answer, or half of one: look at the network, or try again. What keeps something may have been
 * kept.
 */
public final class ConnectionException extends TransportException {
    private static final long serialVersionUID = 1L;

    ConnectionException(String message, Throwable cause) {
        super(message, cause);
    }
}
