package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/** Reads the response to a call on a graph. */
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

    /** Returns the entries of a member with their nodes. */
    <T> Results<T> results(String name, Function<ObjectNode, T> read) {
        return results(fields, name, read);
    }

    private <T> Results<T> results(ObjectNode object, String name, Function<ObjectNode, T> read) {
        List<Results.Result<T>> results = new ArrayList<>();
        for (ObjectNode entry : Json.objects(object, name)) {
            results.add(new Results.Result<>(node(entry, "node"), read.apply(entry)));
        }
        return new Results<>(results);
    }

    /** Returns the tensors of a member, which are in its entries or beside the JSON. */
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

    /** Returns the matrix of a Hessian, if there is one. */
    Optional<HessianMatrix> matrix(String name) {
        if (!Json.has(fields, name)) {
            return Optional.empty();
        }
        ObjectNode stated = Json.member(fields, name);
        Results<NodeOffset> offsets = results(stated, "offsets",
            entry -> new NodeOffset(Json.whole(entry, "offset"), Json.whole(entry, "size")));
        Tensor tensor = tensor(stated, name);
        fields.remove(name);
        return Optional.of(new HessianMatrix(tensor, offsets));
    }

    private Tensor tensor(ObjectNode entry, String place) {
        if (Json.has(entry, "tensor")) {
            return TensorJson.decoded(Json.member(entry, "tensor"));
        }
        if (!beside.containsKey(place)) {
            throw new InputException("the tensor '" + place + "' is missing");
        }
        return beside.get(place);
    }

    private Node node(ObjectNode entry, String name) {
        return graph.node(Json.whole(entry, name));
    }

    List<Node> nodes(String name) {
        return Arrays.stream(Json.ids(fields, name)).mapToObj(graph::node).toList();
    }

    /** Returns the graph of the response. Ignores tensors whose role is unknown. */
    Graph answeredGraph() {
        Graph answered = Graph.read(Json.member(fields, "graph"), beside);
        fields.remove("graph");
        return answered;
    }
}
