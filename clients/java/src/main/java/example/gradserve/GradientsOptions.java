package example.gradserve;

import java.util.List;
import java.util.Optional;

/** What {@code gradients} takes beside what is required. */
public final class GradientsOptions extends RunOptions<GradientsOptions> {
    GradientsOptions() {}

    @Override
    GradientsOptions self() {
        return this;
    }

    /**
     * What is differentiated; the last node unless stated.
     *
     * @param node of one element, or with a cotangent
     * @return these options
     */
    public GradientsOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * What to differentiate by; all parameters unless stated.
     *
     * @param nodes leaves or not
     * @return these options
     */
    public GradientsOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }

    /**
     * The weights of the elements of what is differentiated.
     *
     * @param weights of its shape
     * @return these options
     */
    public GradientsOptions cotangent(Tensor weights) {
        asked.cotangent = Optional.of(weights);
        return this;
    }
}
