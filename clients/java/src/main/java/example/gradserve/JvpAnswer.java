package example.gradserve;

/** Values, and their derivatives along tangents. */
public final class JvpAnswer extends ForwardAnswer {
    private final Results<Tensor> tangents;

    JvpAnswer(AnswerReader reader) {
        super(reader);
        tangents = reader.tensors("tangents");
    }

    /**
     * Returns the derivatives of the outputs.
     *
     * @return results by output
     */
    public Results<Tensor> tangents() {
        return tangents;
    }
}
