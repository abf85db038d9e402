package example.gradserve;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** The definition of a model: names for leaves and outputs of a registered graph, and tensors for all other leaves. */
public final class ModelDefinition {
    private final ObjectNode stated = Json.object();
    private final ArrayNode inputs;
    private final ArrayNode outputs;
    private final ArrayNode bound;

    /**
     * Creates a definition without inputs and outputs.
     *
     * @param graphId the hash of a registered graph
     */
    public ModelDefinition(String graphId) {
        stated.put("graph_id", graphId);
        inputs = stated.putArray("inputs");
        outputs = stated.putArray("outputs");
        bound = stated.putArray("bound");
    }

    /**
     * Adds an input.
     *
     * @param name the name of the input
     * @param node the id of a leaf
     * @param type its dtype and shape; an extent of -1 is free
     * @return this definition
     */
    public ModelDefinition input(String name, int node, TensorType type) {
        ObjectNode entry = inputs.addObject().put("name", name).put("node", node).put("dtype", type.dtype());
        entry.set("shape", Json.array(type.shape()));
        return this;
    }

    /**
     * Adds an output.
     *
     * @param name the name of the output
     * @param node the id of any node
     * @return this definition
     */
    public ModelDefinition output(String name, int node) {
        outputs.addObject().put("name", name).put("node", node);
        return this;
    }

    /**
     * Binds a leaf to a resident tensor.
     *
     * @param node the id of the leaf
     * @param tensorName the name of the tensor
     * @return this definition
     */
    public ModelDefinition bound(int node, String tensorName) {
        bound.addObject().put("node", node).put("tensor_id", tensorName);
        return this;
    }

    /**
     * Sets the description of the model.
     *
     * @param text a text for people
     * @return this definition
     */
    public ModelDefinition description(String text) {
        stated.put("description", text);
        return this;
    }

    byte[] bytes() {
        return Json.bytes(stated);
    }
}
