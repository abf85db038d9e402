package example.gradserve;

import java.util.List;

/**
 * Values and gradients. Results of {@code batch} have a leading axis, and gradients may be empty. If {@code of} has
 * several elements, in a graph of opset 2, gradients of {@code batch} are Jacobians: the shape of {@code of} followed
 * by the shape of the node.
 */
public sealed class GradientsAnswer extends ForwardAnswer permits HvpAnswer, HessianAnswer {
    private final Results<Tensor> gradients;
    private final List<Node> disconnected;

    GradientsAnswer(AnswerReader reader) {
        super(reader);
        gradients = reader.tensors("gradients");
        disconnected = reader.nodes("disconnected");
    }

    /**
     * Reads the result of {@code batch}, which has no gradients if there is nothing to differentiate with respect to.
     */
    static GradientsAnswer ofBatch(AnswerReader reader) {
        if (!reader.fields.has("gradients")) {
            reader.fields.putArray("gradients");
        }
        return new GradientsAnswer(reader);
    }

    /**
     * Returns the gradients by node of {@code wrt}, each with the shape of its node.
     *
     * @return results by node
     */
    public Results<Tensor> gradients() {
        return gradients;
    }

    /**
     * Returns the nodes of {@code wrt} that have no path to the differentiated node. Their gradients are zero.
     *
     * @return a subset of {@code wrt}
     */
    public List<Node> disconnected() {
        return disconnected;
    }
}
