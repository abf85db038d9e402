package example.gradserve;

import java.util.List;

/**
 * What calls take that give values back.
 *
 * @param <S> the options of the call
 */
public abstract sealed class RunOptions<S extends RunOptions<S>> extends CallOptions<S>
    permits ForwardOptions, GradientsOptions, VjpOptions, JvpOptions, JacobianOptions, HvpOptions,
        HessianOptions, BatchOptions {
    RunOptions() {}

    /**
     * The nodes whose values come back; the last one, or the one that is differentiated, unless stated.
     *
     * @param nodes each once
     * @return these options
     */
    public S outputs(Node... nodes) {
        asked.lists.put("outputs", List.of(nodes));
        return self();
    }

    /**
     * Whether the server looks for the first NaN or infinity, which takes time.
     *
     * @param looks false unless stated
     * @return these options
     */
    public S diagnose(boolean looks) {
        asked.values.put("diagnose", looks);
        return self();
    }

    /**
     * How many bytes the call may take at most.
     *
     * @param bytes from 1 to the server's limit; else that limit
     * @return these options
     */
    public S memoryBudget(long bytes) {
        asked.values.put("memory_budget", bytes);
        return self();
    }

    /**
     * How products and convolutions may read float32 on a GPU.
     *
     * @param coarsest else as the server has it
     * @return these options
     */
    public S precision(Precision coarsest) {
        asked.values.put("precision", coarsest.word());
        return self();
    }

    /**
     * Has the value of a node kept as a resident tensor, with those of other nodes that are stated so.
     *
     * @param node any with one output
     * @param name of the resident tensor
     * @return these options
     */
    public S store(Node node, String name) {
        return store(node, new Store(name));
    }

    /**
     * Has the value of a node kept as a resident tensor, with those of other nodes that are stated so.
     *
     * @param node any with one output
     * @param where under which name, and on what condition
     * @return these options
     */
    public S store(Node node, Store where) {
        asked.store.put(node, where);
        return self();
    }
}
