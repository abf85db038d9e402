package example.gradserve;

import java.util.List;
import java.util.Optional;

/** What {@code plan} takes beside what is required. */
public final class PlanOptions extends CallOptions<PlanOptions> {
    PlanOptions() {}

    @Override
    PlanOptions self() {
        return this;
    }

    /**
     * What is differentiated; the last node unless stated.
     *
     * @param node of one element
     * @return these options
     */
    public PlanOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * What to differentiate by; all parameters unless stated.
     *
     * @param nodes leaves or not
     * @return these options
     */
    public PlanOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }

    /**
     * The call to plan.
     *
     * @param name its name on the wire
     * @return these options
     */
    public PlanOptions call(String name) {
        asked.values.put("call", name);
        return this;
    }

    /**
     * The leaves whose feeds would have a leading axis.
     *
     * @param leaves of the graph
     * @return these options
     */
    public PlanOptions mapped(Node... leaves) {
        asked.lists.put("mapped", List.of(leaves));
        return this;
    }

    /**
     * What is made of the examples; each is by itself unless stated.
     *
     * @param reduction their sum or mean
     * @return these options
     */
    public PlanOptions reduce(Reduction reduction) {
        asked.values.put("reduce", reduction.word());
        return this;
    }

    /**
     * How many examples are added up at a time.
     *
     * @param examples 1 or more; else as many as the server finds right
     * @return these options
     */
    public PlanOptions block(long examples) {
        asked.values.put("block", examples);
        return this;
    }

    /**
     * The nodes whose values would come back.
     *
     * @param nodes of the graph
     * @return these options
     */
    public PlanOptions outputs(Node... nodes) {
        asked.lists.put("outputs", List.of(nodes));
        return this;
    }

    /**
     * How many bytes the call may take at most.
     *
     * @param bytes from 1 to the server's limit; else that limit
     * @return these options
     */
    public PlanOptions memoryBudget(long bytes) {
        asked.values.put("memory_budget", bytes);
        return this;
    }

    /**
     * How products and convolutions may read float32 on a GPU.
     *
     * @param coarsest else as the server has it
     * @return these options
     */
    public PlanOptions precision(Precision coarsest) {
        asked.values.put("precision", coarsest.word());
        return this;
    }
}
