package example.gradserve;

import java.util.List;

/** Options of {@code vjp}. */
public final class VjpOptions extends RunOptions<VjpOptions> {
    VjpOptions() {}

    @Override
    VjpOptions self() {
        return this;
    }

    /**
     * Sets the nodes to differentiate with respect to; by default all parameters.
     *
     * @param nodes leaves or other nodes
     * @return these options
     */
    public VjpOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }

    /**
     * Sets whether every cotangent has a leading axis.
     *
     * @param batched false by default
     * @return these options
     */
    public VjpOptions batched(boolean batched) {
        asked.values.put("batched", batched);
        return this;
    }
}
