package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/**
 * One version of a model on the server: a registered graph with named inputs and outputs, and with its weights on the
 * server. It refers to nodes by id.
 *
 * @param name the name
 * @param etag the identifier of this version, for conditions
 * @param graphId the hash of its graph
 * @param description a text for people; empty if there is none
 * @param inputs the inputs, in order
 * @param outputs the outputs, in order
 * @param bound all other leaves that the outputs need
 */
public record Model(
    String name, String etag, String graphId, String description, List<ModelValue> inputs, List<ModelValue> outputs,
    List<BoundLeaf> bound) {

    static Model read(ObjectNode stated) {
        return new Model(
            Json.text(stated, "name"), Json.text(stated, "etag"), Json.text(stated, "graph_id"),
            Json.textOr(stated, "description", ""),
            Json.objects(stated, "inputs").stream().map(ModelValue::read).toList(),
            Json.objects(stated, "outputs").stream().map(ModelValue::read).toList(),
            Json.objects(stated, "bound").stream().map(BoundLeaf::read).toList());
    }
}
