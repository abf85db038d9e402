package example.gradserve;

import java.util.List;
import java.util.Optional;

/** What {@code batch} takes beside what is required. */
public final class BatchOptions extends RunOptions<BatchOptions> {
    BatchOptions() {}

    @Override
    BatchOptions self() {
        return this;
    }

    /**
     * What is differentiated; the last node unless stated.
     *
     * @param node of one element
     * @return these options
     */
    public BatchOptions of(Node node) {
        asked.of = Optional.of(node);
        return this;
    }

    /**
     * What to differentiate by; all parameters unless stated.
     *
     * @param nodes leaves or not
     * @return these options
     */
    public BatchOptions wrt(Node... nodes) {
        asked.lists.put("wrt", List.of(nodes));
        return this;
    }

    /**
     * The leaves whose feeds have a leading axis.
     *
     * @param leaves of the graph
     * @return these options
     */
    public BatchOptions mapped(Node... leaves) {
        asked.lists.put("mapped", List.of(leaves));
        return this;
    }

    /**
     * What is made of the examples; each is by itself unless stated.
     *
     * @param reduction their sum or mean
     * @return these options
     */
    public BatchOptions reduce(Reduction reduction) {
        asked.values.put("reduce", reduction.word());
        return this;
    }

    /**
     * How many examples are added up at a time.
     *
     * @param examples 1 or more; else as many as the server finds right
     * @return these options
     */
    public BatchOptions block(long examples) {
        asked.values.put("block", examples);
        return this;
    }
}
