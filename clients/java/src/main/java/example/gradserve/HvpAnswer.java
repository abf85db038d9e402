package example.gradserve;

/** Values, gradients, and the Hessian times vectors. */
public final class HvpAnswer extends GradientsAnswer {
    private final Results<Tensor> hvp;

    HvpAnswer(AnswerReader reader) {
        super(reader);
        hvp = reader.tensors("hvp");
    }

    /**
     * The Hessian times the vectors.
     *
     * @return by nodes that it was differentiated by
     */
    public Results<Tensor> hvp() {
        return hvp;
    }
}
