package example.gradserve;

/** For servers without room for what was to be kept: delete something. */
public final class StoreFullException extends RefusalException {
    private static final long serialVersionUID = 1L;

    StoreFullException(Problem problem, String remark) {
        super(problem, remark);
    }
}
