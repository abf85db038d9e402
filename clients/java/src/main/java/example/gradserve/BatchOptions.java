package example.gradserve;

import java.util.List;
import java.util.Optional;

/** Options of {@code batch}. */
public final class BatchOptions extends RunOptions<BatchOptions> {
    BatchOptions() {}

    @Override
    BatchOptions self() {
        return this;
    }

    /**
     * Sets the node to differentiate; by default the last one.
     *
     * @param node a node with one element
     * @return these options
     */
    public BatchOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * Sets the nodes to differentiate with respect to; by default all parameters.
     *
     * @param nodes leaves or other nodes
     * @return these options
     */
    public BatchOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }

    /**
     * Sets the leaves whose feeds have a leading axis.
     *
     * @param leaves leaves of the graph
     * @return these options
     */
    public BatchOptions mapped(Node... leaves) {
        asked.lists.put("mapped", List.of(leaves));
        return this;
    }

    /**
     * Sets how the results of the examples are combined; by default not at all.
     *
     * @param reduction their sum or mean
     * @return these options
     */
    public BatchOptions reduce(Reduction reduction) {
        asked.values.put("reduce", reduction.word());
        return this;
    }

    /**
     * Sets how many examples are combined at a time.
     *
     * @param examples 1 or more; by default the server chooses the block size
     * @return these options
     */
    public BatchOptions block(long examples) {
        asked.values.put("block", examples);
        return this;
    }
}
