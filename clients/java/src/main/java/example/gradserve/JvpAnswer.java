package example.gradserve;

/** Values, and their derivatives along tangents. */
public final class JvpAnswer extends ForwardAnswer {
    private final Results<Tensor> tangents;

    JvpAnswer(AnswerReader reader) {
        super(reader);
        tangents = reader.tensors("tangents");
    }

    /**
     * The derivatives of the outputs.
     *
     * @return by outputs
     */
    public Results<Tensor> tangents() {
        return tangents;
    }
}
