package example.gradserve;

import java.util.List;
import java.util.Optional;

/** Options of {@code plan}. */
public final class PlanOptions extends CallOptions<PlanOptions> {
    PlanOptions() {}

    @Override
    PlanOptions self() {
        return this;
    }

    /**
     * Sets the node to differentiate; by default the last one.
     *
     * @param node a node with one element
     * @return these options
     */
    public PlanOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * Sets the nodes to differentiate with respect to; by default all parameters.
     *
     * @param nodes leaves or other nodes
     * @return these options
     */
    public PlanOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }

    /**
     * Sets the call to plan.
     *
     * @param name its API name
     * @return these options
     */
    public PlanOptions call(String name) {
        asked.values.put("call", name);
        return this;
    }

    /**
     * Sets the leaves whose feeds would have a leading axis.
     *
     * @param leaves leaves of the graph
     * @return these options
     */
    public PlanOptions mapped(Node... leaves) {
        asked.lists.put("mapped", List.of(leaves));
        return this;
    }

    /**
     * Sets how the results of the examples are combined; by default not at all.
     *
     * @param reduction their sum or mean
     * @return these options
     */
    public PlanOptions reduce(Reduction reduction) {
        asked.values.put("reduce", reduction.word());
        return this;
    }

    /**
     * Sets how many examples are combined at a time.
     *
     * @param examples 1 or more; by default the server chooses the block size
     * @return these options
     */
    public PlanOptions block(long examples) {
        asked.values.put("block", examples);
        return this;
    }

    /**
     * Sets the nodes whose values would be returned.
     *
     * @param nodes nodes of the graph
     * @return these options
     */
    public PlanOptions outputs(Node... nodes) {
        asked.lists.put("outputs", List.of(nodes));
        return this;
    }

    /**
     * Limits the memory of the call.
     *
     * @param bytes from 1 to the server's limit, which is the default
     * @return these options
     */
    public PlanOptions memoryBudget(long bytes) {
        asked.values.put("memory_budget", bytes);
        return this;
    }

    /**
     * Sets the precision of float32 matrix products and convolutions on a GPU.
     *
     * @param coarsest the lowest precision allowed; by default the server's setting
     * @return these options
     */
    public PlanOptions precision(Precision coarsest) {
        asked.values.put("precision", coarsest.word());
        return this;
    }
}
