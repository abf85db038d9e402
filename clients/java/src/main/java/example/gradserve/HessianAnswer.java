package example.gradserve;

/** Values, gradients and Hessians. */
public final class HessianAnswer extends GradientsAnswer {
    private final Blocks hessian;

    HessianAnswer(AnswerReader reader) {
        super(reader);
        hessian = reader.blocks("hessian", "row", "column");
    }

    /**
     * The Hessians.
     *
     * @return by pairs of nodes that it was differentiated by
     */
    public Blocks hessian() {
        return hessian;
    }
}
