package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/**
 * A page of a listing.
 *
 * @param entries the entries in order
 * @param next the entry after which the listing continues, if it does; pass it to {@link ListOptions#after}
 * @param <T> the type of the entries
 */
public record Page<T>(List<T> entries, Optional<String> next) {
    static <T> Page<T> read(ObjectNode answer, String kind, Function<ObjectNode, T> entry) {
        return new Page<>(
            Json.objects(answer, kind).stream().map(entry).toList(),
            Optional.ofNullable(Json.textOr(answer, "next", null)));
    }
}
