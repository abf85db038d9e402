package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * A leaf of a model that is bound to a resident tensor. Each call reads the current version of the tensor.
 *
 * @param node the id of the leaf
 * @param tensorName the name of the tensor
 * @param type the dtype (by name) and shape that the tensor must have
 */
public record BoundLeaf(int node, String tensorName, TensorType type) {
    static BoundLeaf read(ObjectNode stated) {
        return new BoundLeaf(
            Json.whole(stated, "node"), Json.text(stated, "tensor_id"), ModelValue.type(stated));
    }
}
