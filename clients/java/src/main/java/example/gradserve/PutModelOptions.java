package example.gradserve;

/** Options of {@code putModel}. */
public final class PutModelOptions {
    PutModelOptions() {}

    String ifMatch = "";
    String ifNoneMatch = "";

    /**
     * Requires that the stored version has this etag.
     *
     * @param etag the etag, or {@code *} for any
     * @return these options
     */
    public PutModelOptions ifMatch(String etag) {
        ifMatch = etag;
        return this;
    }

    /**
     * Requires that the stored version does not have this etag. {@code *} requires that the model does not exist.
     *
     * @param etag the etag, or {@code *} for any
     * @return these options
     */
    public PutModelOptions ifNoneMatch(String etag) {
        ifNoneMatch = etag;
        return this;
    }
}
