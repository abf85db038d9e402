package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The metadata of a registered graph.
 *
 * @param id the hash of the graph
 * @param description a text for people; empty if there is none
 * @param nodeCount the number of nodes
 */
public record GraphSummary(String id, String description, int nodeCount) {
    static GraphSummary read(ObjectNode stated) {
        return new GraphSummary(
            Json.text(stated, "graph_id"), Json.textOr(stated, "description", ""), Json.whole(stated, "node_count"));
    }
}
