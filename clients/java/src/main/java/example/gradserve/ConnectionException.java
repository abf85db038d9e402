package example.gradserve;

/**
 * There is no response, or an incomplete one: check the network, or retry. The server may still have stored what the
 * request stores.
 */
public final class ConnectionException extends TransportException {
    private static final long serialVersionUID = 1L;

    ConnectionException(String message, Throwable cause) {
        super(message, cause);
    }
}
