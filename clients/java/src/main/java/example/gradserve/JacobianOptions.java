package example.gradserve;

import java.util.List;

/** What {@code jacobian} takes beside what is required. */
public final class JacobianOptions extends RunOptions<JacobianOptions> {
    JacobianOptions() {}

    @Override
    JacobianOptions self() {
        return this;
    }

    /**
     * What to differentiate by; all parameters unless stated.
     *
     * @param nodes leaves or not
     * @return these options
     */
    public JacobianOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }
}
