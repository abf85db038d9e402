package example.gradserve;

import java.util.function.Supplier;

/**
 * The response is invalid, for example its media type, its JSON, or a tensor that does not fit its bytes: look for a
 * proxy in between.
 */
public final class MalformedAnswerException extends TransportException {
    private static final long serialVersionUID = 1L;

    MalformedAnswerException(String message) {
        super(message, null);
    }

    /** Reads a part of a response, and converts InputExceptions. */
    static <T> T unless(Supplier<T> reading) {
        try {
            return reading.get();
        } catch (InputException wrong) {
            throw new MalformedAnswerException("invalid response: " + wrong.getMessage());
        }
    }
}
