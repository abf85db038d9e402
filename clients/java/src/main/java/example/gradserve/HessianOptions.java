package example.gradserve;

import java.util.List;
import java.util.Optional;

/** Options of {@code hessian}. */
public final class HessianOptions extends RunOptions<HessianOptions> {
    HessianOptions() {}

    @Override
    HessianOptions self() {
        return this;
    }

    /**
     * Sets the node to differentiate; by default the last one.
     *
     * @param node a node with one element
     * @return these options
     */
    public HessianOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * Sets the nodes to differentiate with respect to; by default all parameters.
     *
     * @param nodes leaves or other nodes
     * @return these options
     */
    public HessianOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }

    /**
     * Sets the layout of the Hessian.
     *
     * @param layout by default, a block for each pair of nodes
     * @return these options
     */
    public HessianOptions layout(HessianLayout layout) {
        asked.values.put("layout", layout.word());
        return this;
    }
}
