package example.gradserve;

import java.util.Optional;

/** What {@code get} takes beside a name. */
public final class GetOptions {
    GetOptions() {}

    String ifMatch = "";
    String ifNoneMatch = "";
    Optional<Form> form = Optional.empty();

    /**
     * The version that there has to be.
     *
     * @param etag its etag, {@code *} for any
     * @return these options
     */
    public GetOptions ifMatch(String etag) {
        ifMatch = etag;
        return this;
    }

    /**
     * How the tensor travels.
     *
     * @param stated else as bytes
     * @return these options
     */
    public GetOptions form(Form stated) {
        form = Optional.of(stated);
        return this;
    }
}
