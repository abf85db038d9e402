package example.gradserve;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** What a model is to be: names for leaves and outputs of a registered graph, and tensors for all other leaves. */
public final class ModelDefinition {
    private final ObjectNode stated = Json.object();
    private final ArrayNode inputs;
    private final ArrayNode outputs;
    private final ArrayNode bound;

    /**
     * A model of a graph, as yet without names.
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
     * One more input.
     *
     * @param name of the input
     * @param node the id of a leaf
     * @param type its dtype and shape, of which an extent of -1 is free
     * @return this definition
     */
    public ModelDefinition input(String name, int node, TensorType type) {
        ObjectNode entry = inputs.addObject().put("name", name).put("node", node).put("dtype", type.dtype());
        entry.set("shape", Json.array(type.shape()));
        return this;
    }

    /**
     * One more output.
     *
     * @param name of the output
     * @param node the id of any node
     * @return this definition
     */
    public ModelDefinition output(String name, int node) {
        outputs.addObject().put("name", name).put("node", node);
        return this;
    }

    /**
     * One more leaf whose value is a resident tensor.
     *
     * @param node the id of the leaf
     * @param tensorName under which the tensor is kept
     * @return this definition
     */
    public ModelDefinition bound(int node, String tensorName) {
        bound.addObject().put("node", node).put("tensor_id", tensorName);
        return this;
    }

    /**
     * What the model is.
     *
     * @param text for people
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
