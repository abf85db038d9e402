package example.gradserve;

import java.util.Optional;

/** The server's report of why it refuses. */
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
            ? "status " + problem.status() + ", without a report that says why"
            : problem.code() + ": " + problem.detail();
        return remark.isEmpty() ? said : said + " (" + remark + ")";
    }

    /** The report as the exception that says what to do about it; the status decides, since codes are added. */
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
     * The status of HTTP.
     *
     * @return from 400 on
     */
    public int status() {
        return problem.status();
    }

    /**
     * A word for programs. Codes are an open list.
     *
     * @return such as {@code shape_mismatch}; empty where no report came
     */
    public String code() {
        return problem.code();
    }
}
