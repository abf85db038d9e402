package example.gradserve;

import java.util.Optional;

/**
 * The base class of all exceptions of calls, grouped by how to handle them.
 *
 * <pre>
 * InputException                 rejected before it was sent: fix the program
 * TransportException             no readable response
 *     ConnectionException        no response, or an incomplete one: check the network, or retry
 *     MalformedAnswerException   not a gradserve response: look for a proxy in between
 *     AnswerTooLargeException    longer than the limit: request less, or raise the limit
 * DeadlineException              the timeout expired, here or on the server: request less, or raise the timeout
 * RefusalException               a problem report of the server, with all of its fields
 *     GraphException             an invalid request, or one beyond a limit: fix the graph or its feeds
 *     AuthenticationException    the API key is missing, unknown or lacks the permission: use another key
 *     RateException              the key has exceeded its rate limit: send fewer requests
 *     OverloadException          the server is busy or shutting down: retry later
 *     NotFoundException          nothing is stored under this name or id: put or register it
 *     ConditionException         another client has written it, or it is in use: read again, then write
 *     StoreFullException         the server's store is full: delete something
 *     ServerException            an internal error of the server: report it with its request id
 * CallInterruptedException       the thread was interrupted while it waited
 * </pre>
 */
public abstract sealed class GradserveException extends RuntimeException
    permits InputException, TransportException, DeadlineException, RefusalException, CallInterruptedException {
    private static final long serialVersionUID = 1L;

    GradserveException(String message, Throwable cause) {
        super(message, cause);
    }

    /**
     * Returns the server's problem report, if there is one.
     *
     * @return the report of a refusal, or of a deadline that passed on the server
     */
    public Optional<Problem> problem() {
        return Optional.empty();
    }
}
