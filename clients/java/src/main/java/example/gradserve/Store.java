package example.gradserve;

import java.util.Optional;

/**
 * The tensor that a call stores the value of a node as, or the gradient with respect to it.
 *
 * @param name the name of the resident tensor
 * @param ifMatch the etag that the tensor must have now, {@code *} for any, or {@code ""} if it must not exist; empty
 *     for no condition
 * @param durable if false, the server may respond before the value is on disk
 * @param isGradient whether to store the gradient with respect to the node instead of its value
 */
public record Store(String name, Optional<String> ifMatch, Optional<Boolean> durable, boolean isGradient) {
    /**
     * Stores a value unconditionally.
     *
     * @param name the name of the resident tensor
     */
    public Store(String name) {
        this(name, Optional.empty(), Optional.empty(), false);
    }

    /**
     * Returns a copy with a condition.
     *
     * @param etag the etag that the tensor must have now, {@code *} for any, or {@code ""} if it must not exist
     * @return a copy
     */
    public Store ifMatch(String etag) {
        return new Store(name, Optional.of(etag), durable, isGradient);
    }

    /**
     * Returns a copy that sets whether the server responds only after the value is on disk.
     *
     * @param durable false to allow a response before that
     * @return a copy
     */
    public Store durable(boolean durable) {
        return new Store(name, ifMatch, Optional.of(durable), isGradient);
    }

    /**
     * Returns a copy that stores the gradient with respect to the node instead of its value.
     *
     * @return a copy
     */
    public Store gradient() {
        return new Store(name, ifMatch, durable, true);
    }
}
