package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/**
 * The ops that a server has.
 *
 * @param opset their version
 * @param ops each of them
 */
public record Catalogue(int opset, List<Op> ops) {
    /**
     * One of them.
     *
     * @param name as graphs have it
     * @param fields all that the server says of it, by names on the wire
     */
    public record Op(String name, ObjectNode fields) {}

    static Catalogue read(ObjectNode answer) {
        return new Catalogue(
            Json.whole(answer, "opset"),
            Json.objects(answer, "ops").stream().map(row -> new Op(Json.text(row, "name"), row)).toList());
    }
}
