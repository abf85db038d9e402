package example.gradserve;

import java.util.function.Supplier;

/**
 * For answers that are not what was promised, such as another media type, broken JSON, or a tensor that does not fit
 * its bytes: look at what stands in between.
 */
public final class MalformedAnswerException extends TransportException {
    private static final long serialVersionUID = 1L;

    MalformedAnswerException(String message) {
        super(message, null);
    }

    /** What is read in an answer: what is wrong there is no fault of the program's. */
    static <T> T unless(Supplier<T> reading) {
        try {
            return reading.get();
        } catch (InputException wrong) {
            throw new MalformedAnswerException("the answer is not as promised: " + wrong.getMessage());
        }
    }
}
