package example.gradserve;

/** For names and ids under which nothing is kept: put or register it. */
public final class NotFoundException extends RefusalException {
    private static final long serialVersionUID = 1L;

    NotFoundException(Problem problem, String remark) {
        super(problem, remark);
    }
}
