package example.gradserve;

import java.util.List;

/** Options of {@code jacobian}. */
public final class JacobianOptions extends RunOptions<JacobianOptions> {
    JacobianOptions() {}

    @Override
    JacobianOptions self() {
        return this;
    }

    /**
     * Sets the nodes to differentiate with respect to; by default all parameters.
     *
     * @param nodes leaves or other nodes
     * @return these options
     */
    public JacobianOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }
}
