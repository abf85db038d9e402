package example.gradserve;

import java.util.Optional;

/** Options of {@code get}. */
public final class GetOptions {
    GetOptions() {}

    String ifMatch = "";
    String ifNoneMatch = "";
    Optional<Form> form = Optional.empty();

    /**
     * Requires that the stored version has this etag.
     *
     * @param etag the etag, or {@code *} for any
     * @return these options
     */
    public GetOptions ifMatch(String etag) {
        ifMatch = etag;
        return this;
    }

    /**
     * Sets the encoding of the tensor.
     *
     * @param stated the form; by default safetensors
     * @return these options
     */
    public GetOptions form(Form stated) {
        form = Optional.of(stated);
        return this;
    }
}
