package example.gradserve;

/** An invalid argument, detected by the client before it sent anything: fix the program. */
public final class InputException extends GradserveException {
    private static final long serialVersionUID = 1L;

    InputException(String message) {
        super(message, null);
    }
}
