package example.gradserve;

/** Values and Jacobians. */
public final class JacobianAnswer extends ForwardAnswer {
    private final Blocks jacobian;

    JacobianAnswer(AnswerReader reader) {
        super(reader);
        jacobian = reader.blocks("jacobian", "of", "wrt");
    }

    /**
     * The Jacobians.
     *
     * @return by an output and a node that it is differentiated by
     */
    public Blocks jacobian() {
        return jacobian;
    }
}
