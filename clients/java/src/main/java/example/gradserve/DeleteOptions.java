package example.gradserve;

/** What {@code delete} takes beside a name. */
public final class DeleteOptions {
    DeleteOptions() {}

    String ifMatch = "";

    /**
     * The version that there has to be.
     *
     * @param etag its etag, {@code *} for any
     * @return these options
     */
    public DeleteOptions ifMatch(String etag) {
        ifMatch = etag;
        return this;
    }
}
