package example.gradserve;

import java.util.Optional;

/** Options of {@code put}. */
public final class PutOptions {
    PutOptions() {}

    String ifMatch = "";
    String ifNoneMatch = "";
    Optional<Boolean> durable = Optional.empty();
    Optional<Form> form = Optional.empty();

    /**
     * Requires that the stored version has this etag.
     *
     * @param etag the etag, or {@code *} for any
     * @return these options
     */
    public PutOptions ifMatch(String etag) {
        ifMatch = etag;
        return this;
    }

    /**
     * Requires that the stored version does not have this etag. {@code *} requires that the tensor does not exist.
     *
     * @param etag the etag, or {@code *} for any
     * @return these options
     */
    public PutOptions ifNoneMatch(String etag) {
        ifNoneMatch = etag;
        return this;
    }

    /**
     * Sets whether the server responds only after the tensor is on disk.
     *
     * @param before true by default
     * @return these options
     */
    public PutOptions durable(boolean before) {
        durable = Optional.of(before);
        return this;
    }

    /**
     * Sets the encoding of the tensor.
     *
     * @param stated the form; by default it depends on the size
     * @return these options
     */
    public PutOptions form(Form stated) {
        form = Optional.of(stated);
        return this;
    }
}
