package example.gradserve;

import java.util.Optional;

/**
 * What goes wrong with a call, told apart by what one does about it.
 *
 * <pre>
 * InputException                 refused before anything was sent: mend the program
 * TransportException             there is no answer that could be read
 *     ConnectionException        none came, or half of one: look at the network, or try again
 *     MalformedAnswerException   something else came than was promised: look at what stands in between
 *     AnswerTooLargeException    it is longer than may be read: ask for less, or allow more
 * DeadlineException              the time was up, here or on the server: ask for less, or give more
 * RefusalException               the server's report, with all of its fields
 *     GraphException             the request is wrong, or more than one may ask: mend the graph, or what it is fed
 *     AuthenticationException    the key is missing, unknown, or not allowed this: get another
 *     RateException              the key has used up its rate: ask less often
 *     OverloadException          the server is busy, or about to stop: ask later
 *     NotFoundException          nothing is kept under this name or id: put or register it
 *     ConditionException         somebody else has written meanwhile: read again, then write
 *     StoreFullException         there is no room: delete something
 *     ServerException            a fault of the server's own: report it with its request id
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
     * The server's report, where there is one.
     *
     * @return that of refusals, and of a deadline that the server saw pass
     */
    public Optional<Problem> problem() {
        return Optional.empty();
    }
}
