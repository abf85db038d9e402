package example.gradserve;

/** For what the client knows to be wrong, and has not sent: mend the program. */
public final class InputException extends GradserveException {
    private static final long serialVersionUID = 1L;

    InputException(String message) {
        super(message, null);
    }
}
