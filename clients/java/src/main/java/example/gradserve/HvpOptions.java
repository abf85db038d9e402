package example.gradserve;

import java.util.List;
import java.util.Optional;

/** Options of {@code hvp}. */
public final class HvpOptions extends RunOptions<HvpOptions> {
    HvpOptions() {}

    @Override
    HvpOptions self() {
        return this;
    }

    /**
     * Sets the node to differentiate; by default the last one.
     *
     * @param node a node with one element
     * @return these options
     */
    public HvpOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * Sets the nodes to differentiate with respect to; by default all parameters.
     *
     * @param nodes leaves or other nodes
     * @return these options
     */
    public HvpOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }
}
