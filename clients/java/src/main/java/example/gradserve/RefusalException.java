package example.gradserve;

import java.util.Optional;

/** A problem report of the server. */
public abstract sealed class RefusalException extends GradserveException
    permits AuthenticationException, ConditionException, GraphException, NotFoundException, OverloadException,
        RateException, ServerException, StoreFullException {
    private static final long serialVersionUID = 1L;
    private final transient Problem problem;

    RefusalException(Problem problem, String remark) {
        super(told(problem, remark), null);
        this.problem = problem;
    }

    static String told(Problem problem, String remark) {
        String said = problem.code().isEmpty()
            ? "status " + problem.status() + " without a problem report"
            : problem.code() + ": " + problem.detail();
        return remark.isEmpty() ? said : said + " (" + remark + ")";
    }

    /**
     * Converts a problem report into an exception. The status decides the class, not the code, because new codes are
     * added.
     */
    static GradserveException of(Problem problem, String remark) {
        return switch (problem.status()) {
            case 401, 403 -> new AuthenticationException(problem, remark);
            case 404 -> new NotFoundException(problem, remark);
            case 408, 504 -> new DeadlineException(problem, remark);
            case 409, 412 -> new ConditionException(problem, remark);
            case 429 -> new RateException(problem, remark);
            case 503 -> new OverloadException(problem, remark);
            case 507 -> new StoreFullException(problem, remark);
            default -> problem.status() >= 500
                ? new ServerException(problem, remark)
                : new GraphException(problem, remark);
        };
    }

    @Override
    public Optional<Problem> problem() {
        return Optional.of(problem);
    }

    /**
     * Returns the HTTP status.
     *
     * @return a status from 400
     */
    public int status() {
        return problem.status();
    }

    /**
     * Returns the code, for programs. New codes may be added at any time.
     *
     * @return a code such as {@code shape_mismatch}; empty if the response had no problem report
     */
    public String code() {
        return problem.code();
    }
}
