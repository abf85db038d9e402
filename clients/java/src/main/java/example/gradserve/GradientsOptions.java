package example.gradserve;

import java.util.List;
import java.util.Optional;

/** Options of {@code gradients}. */
public final class GradientsOptions extends RunOptions<GradientsOptions> {
    GradientsOptions() {}

    @Override
    GradientsOptions self() {
        return this;
    }

    /**
     * Sets the node to differentiate; by default the last one.
     *
     * @param node a node with one element, or any if you set a cotangent
     * @return these options
     */
    public GradientsOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * Sets the nodes to differentiate with respect to; by default all parameters.
     *
     * @param nodes leaves or other nodes
     * @return these options
     */
    public GradientsOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }

    /**
     * Sets the weights of the elements of the differentiated node.
     *
     * @param weights a tensor of its shape
     * @return these options
     */
    public GradientsOptions cotangent(Tensor weights) {
        asked.cotangent = Optional.of(weights);
        return this;
    }
}
