package example.gradserve;

import java.util.List;

/**
 * Options of calls that return values.
 *
 * @param <S> the options of the call
 */
public abstract sealed class RunOptions<S extends RunOptions<S>> extends CallOptions<S>
    permits ForwardOptions, GradientsOptions, VjpOptions, JvpOptions, JacobianOptions, HvpOptions,
        HessianOptions, BatchOptions {
    RunOptions() {}

    /**
     * Sets the nodes whose values are returned; by default the last one, or the differentiated one.
     *
     * @param nodes distinct nodes
     * @return these options
     */
    public S outputs(Node... nodes) {
        asked.lists.put("outputs", List.of(nodes));
        return self();
    }

    /**
     * Sets whether to report the first NaN or infinity, which makes the call slower.
     *
     * @param looks false by default
     * @return these options
     */
    public S diagnose(boolean looks) {
        asked.values.put("diagnose", looks);
        return self();
    }

    /**
     * Limits the memory of the call.
     *
     * @param bytes from 1 to the server's limit, which is the default
     * @return these options
     */
    public S memoryBudget(long bytes) {
        asked.values.put("memory_budget", bytes);
        return self();
    }

    /**
     * Sets the precision of float32 matrix products and convolutions on a GPU.
     *
     * @param coarsest the lowest precision allowed; by default the server's setting
     * @return these options
     */
    public S precision(Precision coarsest) {
        asked.values.put("precision", coarsest.word());
        return self();
    }

    /**
     * Stores the value of a node as a resident tensor, in addition to other nodes.
     *
     * @param node any node with one output
     * @param name the name of the resident tensor
     * @return these options
     */
    public S store(Node node, String name) {
        return store(node, new Store(name));
    }

    /**
     * Stores the value of a node as a resident tensor, in addition to other nodes.
     *
     * @param node any node with one output
     * @param where the name, and the conditions
     * @return these options
     */
    public S store(Node node, Store where) {
        asked.store.put(node, where);
        return self();
    }
}
