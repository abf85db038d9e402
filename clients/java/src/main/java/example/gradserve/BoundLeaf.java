package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * A leaf of a model whose value is a resident tensor, which each call reads as it is then.
 *
 * @param node the id of the leaf
 * @param tensorName under which the tensor is kept
 * @param type the dtype, by its word, and shape that it has to have
 */
public record BoundLeaf(int node, String tensorName, TensorType type) {
    static BoundLeaf read(ObjectNode stated) {
        return new BoundLeaf(
            Json.whole(stated, "node"), Json.text(stated, "tensor_id"), ModelValue.type(stated));
    }
}
