package example.gradserve;

import java.util.Optional;
import java.util.OptionalInt;

/** Options of listings. */
public final class ListOptions {
    ListOptions() {}

    OptionalInt limit = OptionalInt.empty();
    Optional<String> after = Optional.empty();

    /**
     * Sets the number of entries per page.
     *
     * @param entries the number; by default the server's
     * @return these options
     */
    public ListOptions limit(int entries) {
        limit = OptionalInt.of(entries);
        return this;
    }

    /**
     * Sets the entry after which the listing starts.
     *
     * @param entry an entry such as {@link Page#next}
     * @return these options
     */
    public ListOptions after(String entry) {
        after = Optional.of(entry);
        return this;
    }
}
