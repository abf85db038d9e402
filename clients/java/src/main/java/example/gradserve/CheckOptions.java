package example.gradserve;

import java.util.List;
import java.util.Optional;

/** Options of {@code check}. */
public final class CheckOptions extends CallOptions<CheckOptions> {
    CheckOptions() {}

    @Override
    CheckOptions self() {
        return this;
    }

    /**
     * Sets the node to differentiate; by default the last one.
     *
     * @param node a node with one element
     * @return these options
     */
    public CheckOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * Sets the nodes to differentiate with respect to; by default all parameters.
     *
     * @param nodes leaves or other nodes
     * @return these options
     */
    public CheckOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }

    /**
     * Sets the number of directions to compare.
     *
     * @param count from 1 to 64; by default 4
     * @return these options
     */
    public CheckOptions directions(int count) {
        asked.values.put("directions", count);
        return this;
    }

    /**
     * Sets the largest error that passes.
     *
     * @param relative an error relative to the gradient
     * @return these options
     */
    public CheckOptions tolerance(double relative) {
        asked.values.put("tolerance", relative);
        return this;
    }

    /**
     * Limits the memory of the call.
     *
     * @param bytes from 1 to the server's limit, which is the default
     * @return these options
     */
    public CheckOptions memoryBudget(long bytes) {
        asked.values.put("memory_budget", bytes);
        return this;
    }

    /**
     * Sets the precision of float32 matrix products and convolutions on a GPU.
     *
     * @param coarsest the lowest precision allowed; by default the server's setting
     * @return these options
     */
    public CheckOptions precision(Precision coarsest) {
        asked.values.put("precision", coarsest.word());
        return this;
    }
}
