package example.gradserve;

import java.util.Optional;

/**
 * Under which name a call is to keep the value of a node, or the gradient by it, and on what condition.
 *
 * @param name of the resident tensor
 * @param ifMatch the etag that the tensor must have now, {@code *} where any will do, and {@code ""} where there must
 *     be none; empty is no condition
 * @param durable where it is false, the value is on disk some time after the answer
 * @param isGradient whether it is the gradient by the node, and not its value
 */
public record Store(String name, Optional<String> ifMatch, Optional<Boolean> durable, boolean isGradient) {
    /**
     * To keep a value, whatever is there.
     *
     * @param name of the resident tensor
     */
    public Store(String name) {
        this(name, Optional.empty(), Optional.empty(), false);
    }

    /**
     * The same, on a condition.
     *
     * @param etag that the tensor must have now, {@code *} where any will do, and {@code ""} where there must be none
     * @return another
     */
    public Store ifMatch(String etag) {
        return new Store(name, Optional.of(etag), durable, isGradient);
    }

    /**
     * The same, saying when it has to be on disk.
     *
     * @param durable false for some time after the answer
     * @return another
     */
    public Store durable(boolean durable) {
        return new Store(name, ifMatch, Optional.of(durable), isGradient);
    }

    /**
     * The same for the gradient by the node, in place of its value.
     *
     * @return another
     */
    public Store gradient() {
        return new Store(name, ifMatch, durable, true);
    }
}
