package example.gradserve;

import java.util.List;
import java.util.Optional;

/** Options of {@code differentiate}. */
public final class DifferentiateOptions extends CallOptions<DifferentiateOptions> {
    DifferentiateOptions() {}

    @Override
    DifferentiateOptions self() {
        return this;
    }

    /**
     * Sets the node to differentiate; by default the last one.
     *
     * @param node a node with one element
     * @return these options
     */
    public DifferentiateOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * Sets the nodes to differentiate with respect to; by default all parameters.
     *
     * @param nodes leaves or other nodes
     * @return these options
     */
    public DifferentiateOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }
}
