package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/**
 * A version of a model that the server keeps: a registered graph with names for what goes in and comes out, and with its
 * weights at the server. Its leaves and outputs are nodes by their ids.
 *
 * @param name under which it is kept
 * @param etag of this version, for conditions
 * @param graphId the hash of its graph
 * @param description for people; empty where there is none
 * @param inputs what goes in, in order
 * @param outputs what comes out, in order
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
