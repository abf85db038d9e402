package example.gradserve;

import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Stream;

/** All pages of a listing, one after another. */
final class Listing {
    private Listing() {}

    /** Streams the entries. A page is fetched when its entries are consumed. */
    static <T> Stream<T> of(Function<Consumer<ListOptions>, Page<T>> page) {
        return Stream.iterate(
            page.apply(options -> {}), Objects::nonNull,
            before -> before.next().map(last -> page.apply(options -> options.after(last))).orElse(null))
            .flatMap(each -> each.entries().stream());
    }
}
