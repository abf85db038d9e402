package example.gradserve;

/** Options of {@code delete}. */
public final class DeleteOptions {
    DeleteOptions() {}

    String ifMatch = "";

    /**
     * Requires that the stored version has this etag.
     *
     * @param etag the etag, or {@code *} for any
     * @return these options
     */
    public DeleteOptions ifMatch(String etag) {
        ifMatch = etag;
        return this;
    }
}
