package example.gradserve;

import java.util.List;

/** What {@code vjp} takes beside what is required. */
public final class VjpOptions extends RunOptions<VjpOptions> {
    VjpOptions() {}

    @Override
    VjpOptions self() {
        return this;
    }

    /**
     * What to differentiate by; all parameters unless stated.
     *
     * @param nodes leaves or not
     * @return these options
     */
    public VjpOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }

    /**
     * Whether every cotangent has a leading axis.
     *
     * @param batched false unless stated
     * @return these options
     */
    public VjpOptions batched(boolean batched) {
        asked.values.put("batched", batched);
        return this;
    }
}
