package example.gradserve;

import java.util.Optional;
import java.util.OptionalInt;

/** What listings take. */
public final class ListOptions {
    ListOptions() {}

    OptionalInt limit = OptionalInt.empty();
    Optional<String> after = Optional.empty();

    /**
     * How many entries are asked for at a time.
     *
     * @param entries else as the server has it
     * @return these options
     */
    public ListOptions limit(int entries) {
        limit = OptionalInt.of(entries);
        return this;
    }

    /**
     * Behind which entry to begin.
     *
     * @param entry such as {@link Page#next}
     * @return these options
     */
    public ListOptions after(String entry) {
        after = Optional.of(entry);
        return this;
    }
}
