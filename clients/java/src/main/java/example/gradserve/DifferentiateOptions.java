package example.gradserve;

import java.util.List;
import java.util.Optional;

/** What {@code differentiate} takes beside what is required. */
public final class DifferentiateOptions extends CallOptions<DifferentiateOptions> {
    DifferentiateOptions() {}

    @Override
    DifferentiateOptions self() {
        return this;
    }

    /**
     * What is differentiated; the last node unless stated.
     *
     * @param node of one element
     * @return these options
     */
    public DifferentiateOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * What to differentiate by; all parameters unless stated.
     *
     * @param nodes leaves or not
     * @return these options
     */
    public DifferentiateOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }
}
