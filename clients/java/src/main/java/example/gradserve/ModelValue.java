package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * What goes in or comes out of a model under a name.
 *
 * @param name of the input or output
 * @param node the id of its node
 * @param type its dtype, by its word, and shape, of which an extent of -1 is free: each call states it anew
 */
public record ModelValue(String name, int node, TensorType type) {
    static ModelValue read(ObjectNode stated) {
        return new ModelValue(Json.text(stated, "name"), Json.whole(stated, "node"), type(stated));
    }

    static TensorType type(ObjectNode stated) {
        return new TensorType(Json.text(stated, "dtype"), Json.wholes(stated, "shape"));
    }
}
