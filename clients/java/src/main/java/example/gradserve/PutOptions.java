package example.gradserve;

import java.util.Optional;

/** What {@code put} takes beside a tensor. */
public final class PutOptions {
    PutOptions() {}

    String ifMatch = "";
    String ifNoneMatch = "";
    Optional<Boolean> durable = Optional.empty();
    Optional<Form> form = Optional.empty();

    /**
     * The version that there has to be.
     *
     * @param etag its etag, {@code *} for any
     * @return these options
     */
    public PutOptions ifMatch(String etag) {
        ifMatch = etag;
        return this;
    }

    /**
     * The version that there may not be: {@code *} demands that there is no tensor.
     *
     * @param etag its etag, {@code *} for any
     * @return these options
     */
    public PutOptions ifNoneMatch(String etag) {
        ifNoneMatch = etag;
        return this;
    }

    /**
     * Whether the tensor is on disk before the answer.
     *
     * @param before true unless stated
     * @return these options
     */
    public PutOptions durable(boolean before) {
        durable = Optional.of(before);
        return this;
    }

    /**
     * How the tensor travels.
     *
     * @param stated else as its size suggests
     * @return these options
     */
    public PutOptions form(Form stated) {
        form = Optional.of(stated);
        return this;
    }
}
