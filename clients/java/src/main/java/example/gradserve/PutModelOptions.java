package example.gradserve;

/** What {@code putModel} takes beside a model. */
public final class PutModelOptions {
    PutModelOptions() {}

    String ifMatch = "";
    String ifNoneMatch = "";

    /**
     * The version that there has to be.
     *
     * @param etag its etag, {@code *} for any
     * @return these options
     */
    public PutModelOptions ifMatch(String etag) {
        ifMatch = etag;
        return this;
    }

    /**
     * The version that there may not be: {@code *} demands that there is no model.
     *
     * @param etag its etag, {@code *} for any
     * @return these options
     */
    public PutModelOptions ifNoneMatch(String etag) {
        ifNoneMatch = etag;
        return this;
    }
}
