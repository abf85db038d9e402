package example.gradserve;

/** Values and Jacobians. */
public final class JacobianAnswer extends ForwardAnswer {
    private final Blocks jacobian;

    JacobianAnswer(AnswerReader reader) {
        super(reader);
        jacobian = reader.blocks("jacobian", "of", "wrt");
    }

    /**
     * Returns the Jacobians.
     *
     * @return blocks by output and node of {@code wrt}
     */
    public Blocks jacobian() {
        return jacobian;
    }
}
