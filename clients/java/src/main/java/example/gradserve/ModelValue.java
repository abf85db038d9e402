package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * A named input or output of a model.
 *
 * @param name the name of the input or output
 * @param node the id of its node
 * @param type its dtype (by name) and shape; an extent of -1 is free: each call can use another size
 */
public record ModelValue(String name, int node, TensorType type) {
    static ModelValue read(ObjectNode stated) {
        return new ModelValue(Json.text(stated, "name"), Json.whole(stated, "node"), type(stated));
    }

    static TensorType type(ObjectNode stated) {
        return new TensorType(Json.text(stated, "dtype"), Json.wholes(stated, "shape"));
    }
}
