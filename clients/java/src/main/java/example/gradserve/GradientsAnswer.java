package example.gradserve;

import java.util.List;

/**
 * Values and gradients. Of {@code batch}, all have a leading axis, and there may be no gradients; where {@code of} has
 * several elements, in a graph of opset 2, these are Jacobians: its shape, then the node's.
 */
public sealed class GradientsAnswer extends ForwardAnswer permits HvpAnswer, HessianAnswer {
    private final Results<Tensor> gradients;
    private final List<Node> disconnected;

    GradientsAnswer(AnswerReader reader) {
        super(reader);
        gradients = reader.tensors("gradients");
        disconnected = reader.nodes("disconnected");
    }

    /** That of {@code batch}, where there may be nothing to differentiate by. */
    static GradientsAnswer ofBatch(AnswerReader reader) {
        if (!reader.fields.has("gradients")) {
            reader.fields.putArray("gradients");
        }
        return new GradientsAnswer(reader);
    }

    /**
     * By what it was differentiated by, each of its node's shape.
     *
     * @return by nodes
     */
    public Results<Tensor> gradients() {
        return gradients;
    }

    /**
     * The nodes without a path to what was differentiated; their gradients are zeros.
     *
     * @return some of those that it was differentiated by
     */
    public List<Node> disconnected() {
        return disconnected;
    }
}
