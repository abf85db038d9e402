package example.gradserve;

import java.util.List;

/** Values of nodes. */
public sealed class ForwardAnswer extends Answer permits GradientsAnswer, JvpAnswer, JacobianAnswer {
    private final Results<Tensor> values;
    private final Results<Resident> stored;

    ForwardAnswer(AnswerReader reader) {
        super(reader);
        values = reader.tensors("values");
        stored = reader.fields.has("stored") ? reader.results("stored", Resident::read) : new Results<>(List.of());
    }

    /**
     * Returns the values of the outputs.
     *
     * @return results by output
     */
    public Results<Tensor> values() {
        return values;
    }

    /**
     * Returns the value of the only output.
     *
     * @return its value
     * @throws InputException if there is not exactly one
     */
    public Tensor value() {
        if (values.size() != 1) {
            throw new InputException("the answer has " + values.size() + " values, not one");
        }
        return values.get(0);
    }

    /**
     * Returns the handles of the tensors that the call stored.
     *
     * @return results by node
     */
    public Results<Resident> stored() {
        return stored;
    }
}
