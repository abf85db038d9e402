package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * A graph that the server keeps, without itself.
 *
 * @param id its hash
 * @param description for people; empty where there is none
 * @param nodeCount how many nodes it has
 */
public record GraphSummary(String id, String description, int nodeCount) {
    static GraphSummary read(ObjectNode stated) {
        return new GraphSummary(
            Json.text(stated, "graph_id"), Json.textOr(stated, "description", ""), Json.whole(stated, "node_count"));
    }
}
