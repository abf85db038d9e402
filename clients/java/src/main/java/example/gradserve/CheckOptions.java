package example.gradserve;

import java.util.List;
import java.util.Optional;

/** What {@code check} takes beside what is required. */
public final class CheckOptions extends CallOptions<CheckOptions> {
    CheckOptions() {}

    @Override
    CheckOptions self() {
        return this;
    }

    /**
     * What is differentiated; the last node unless stated.
     *
     * @param node of one element
     * @return these options
     */
    public CheckOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * What to differentiate by; all parameters unless stated.
     *
     * @param nodes leaves or not
     * @return these options
     */
    public CheckOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }

    /**
     * How many directions are compared.
     *
     * @param count from 1 to 64; 4 unless stated
     * @return these options
     */
    public CheckOptions directions(int count) {
        asked.values.put("directions", count);
        return this;
    }

    /**
     * How far apart they may be.
     *
     * @param relative an error relative to the gradient
     * @return these options
     */
    public CheckOptions tolerance(double relative) {
        asked.values.put("tolerance", relative);
        return this;
    }

    /**
     * How many bytes the call may take at most.
     *
     * @param bytes from 1 to the server's limit; else that limit
     * @return these options
     */
    public CheckOptions memoryBudget(long bytes) {
        asked.values.put("memory_budget", bytes);
        return this;
    }

    /**
     * How products and convolutions may read float32 on a GPU.
     *
     * @param coarsest else as the server has it
     * @return these options
     */
    public CheckOptions precision(Precision coarsest) {
        asked.values.put("precision", coarsest.word());
        return this;
    }
}
