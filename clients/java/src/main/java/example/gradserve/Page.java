package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/**
 * A part of a listing.
 *
 * @param entries in their order
 * @param next behind which entry the listing goes on, if it does: {@link ListOptions#after} takes it
 * @param <T> what is listed
 */
public record Page<T>(List<T> entries, Optional<String> next) {
    static <T> Page<T> read(ObjectNode answer, String kind, Function<ObjectNode, T> entry) {
        return new Page<>(
            Json.objects(answer, kind).stream().map(entry).toList(),
            Optional.ofNullable(Json.textOr(answer, "next", null)));
    }
}
