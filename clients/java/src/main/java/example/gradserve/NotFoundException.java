package example.gradserve;

/** Nothing is stored under this name or id: put or register it. */
public final class NotFoundException extends RefusalException {
    private static final long serialVersionUID = 1L;

    NotFoundException(Problem problem, String remark) {
        super(problem, remark);
    }
}
