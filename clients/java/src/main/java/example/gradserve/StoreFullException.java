package example.gradserve;

/** The server has no room for what the request stores: delete something. */
public final class StoreFullException extends RefusalException {
    private static final long serialVersionUID = 1L;

    StoreFullException(Problem problem, String remark) {
        super(problem, remark);
    }
}
