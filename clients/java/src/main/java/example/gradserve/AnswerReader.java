package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** Reads an answer to a call on a graph. */
final class AnswerReader {
    final Graph graph;
    final ObjectNode fields;
    private final Map<String, Tensor> beside;

    AnswerReader(Graph graph, Reply reply) {
        Reply.Parts parts = reply.parts();
        this.graph = graph;
        this.fields = parts.fields();
        this.beside = parts.beside();
    }

    /** The entries of a member, each with its node. */
    <T> Results<T> results(String name, Function<ObjectNode, T> read) {
        List<Results.Result<T>> results = new ArrayList<>();
        for (ObjectNode entry : Json.objects(fields, name)) {
            results.add(new Results.Result<>(node(entry, "node"), read.apply(entry)));
        }
        return new Results<>(results);
    }

    /** The tensors of a member, each in its entry or beside the answer. */
    Results<Tensor> tensors(String name) {
        Results<Tensor> results = results(name, entry -> tensor(entry, name + "." + entry.get("node")));
        fields.remove(name);
        return results;
    }

    Blocks blocks(String name, String first, String second) {
        List<Blocks.Block> blocks = new ArrayList<>();
        for (ObjectNode entry : Json.objects(fields, name)) {
            Tensor tensor = tensor(entry, name + "." + entry.get(first) + "." + entry.get(second));
            blocks.add(new Blocks.Block(node(entry, first), node(entry, second), tensor));
        }
        fields.remove(name);
        return new Blocks(blocks);
    }

    private Tensor tensor(ObjectNode entry, String place) {
        if (Json.has(entry, "tensor")) {
            return TensorJson.decoded(Json.member(entry, "tensor"));
        }
        if (!beside.containsKey(place)) {
            throw new InputException("there is no tensor " + place);
        }
        return beside.get(place);
    }

    private Node node(ObjectNode entry, String name) {
        return graph.node(Json.whole(entry, name));
    }

    List<Node> nodes(String name) {
        return Arrays.stream(Json.ids(fields, name)).mapToObj(graph::node).toList();
    }

    /** The graph that the answer is. Tensors whose role is not known are passed over. */
    Graph answeredGraph() {
        Graph answered = Graph.read(Json.member(fields, "graph"), beside);
        fields.remove("graph");
        return answered;
    }
}
