package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/**
 * The ops of a server.
 *
 * @param opset the version of the op set
 * @param ops the ops
 */
public record Catalogue(int opset, List<Op> ops) {
    /**
     * An op of a server.
     *
     * @param name the name in graphs
     * @param fields the description of the op by API names
     */
    public record Op(String name, ObjectNode fields) {}

    static Catalogue read(ObjectNode answer) {
        return new Catalogue(
            Json.whole(answer, "opset"),
            Json.objects(answer, "ops").stream().map(row -> new Op(Json.text(row, "name"), row)).toList());
    }
}
