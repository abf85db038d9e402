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
     * Those of the outputs.
     *
     * @return by outputs
     */
    public Results<Tensor> values() {
        return values;
    }

    /**
     * That of the only output.
     *
     * @return its value
     * @throws InputException where there are several, or none
     */
    public Tensor value() {
        if (values.size() != 1) {
            throw new InputException("the answer has " + values.size() + " values, and not one");
        }
        return values.get(0);
    }

    /**
     * The handles of what the call had the server keep.
     *
     * @return by nodes
     */
    public Results<Resident> stored() {
        return stored;
    }
}
