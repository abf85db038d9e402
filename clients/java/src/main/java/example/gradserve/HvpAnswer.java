package example.gradserve;

/** Values, gradients and Hessian-vector products. */
public final class HvpAnswer extends GradientsAnswer {
    private final Results<Tensor> hvp;

    HvpAnswer(AnswerReader reader) {
        super(reader);
        hvp = reader.tensors("hvp");
    }

    /**
     * Returns the Hessian-vector products.
     *
     * @return products by node of {@code wrt}
     */
    public Results<Tensor> hvp() {
        return hvp;
    }
}
