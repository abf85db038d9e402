package example.gradserve;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.BiConsumer;

/** A request in JSON with its tensors, which are sent in the JSON or beside it. */
final class Message {
    /** A tensor with its places: a name in a safetensors file, or a member of an object in JSON. */
    private record Placed(Tensor tensor, String where, ObjectNode holder, String key) {}

    final ObjectNode fields = Json.object();
    private final List<Placed> placed = new ArrayList<>();

    /** Returns the requested form, or the default for the size of the tensors. */
    Form form(Optional<Form> asked) {
        return asked.orElseGet(() -> Form.usualOf(placed.stream().mapToLong(each -> each.tensor.byteCount()).sum()));
    }

    /** Returns the JSON with its tensors in it. */
    ObjectNode toJson(Form form) {
        placed.forEach(each -> each.holder.set(each.key, TensorJson.encoded(each.tensor, form)));
        return fields;
    }

    /** Returns the body: JSON, or a file with the JSON in its header. */
    Body body(Form form) {
        if (form != Form.SAFETENSORS) {
            return new Body(Media.JSON, List.of(ByteBuffer.wrap(Json.bytes(toJson(form)))));
        }
        Map<String, Tensor> tensors = new LinkedHashMap<>();
        placed.forEach(each -> tensors.put(each.where, each.tensor));
        Json.bytes(fields); // fails for invalid strings
        return new Body(Media.SAFETENSORS, new Safetensors(tensors, Map.of("request", fields.toString())).pieces());
    }

    /** Returns the first nodes of a graph, and its functions, in the JSON form of the API. */
    ObjectNode graph(Graph graph, int count) {
        if (graph.isOfAFunction()) {
            throw new InputException(graph.told() + " cannot be sent by itself; send the graph that contains it");
        }
        ObjectNode stated = Json.object();
        List<Node> first = graph.nodes().subList(0, count);
        OptionalInt opset = graph.opset().isPresent() ? graph.opset() : Opset.needed(first, graph.functions());
        opset.ifPresent(each -> stated.put("opset", each));
        if (!graph.functions().isEmpty()) {
            ArrayNode functions = stated.putArray("functions");
            graph.functions().forEach(function -> functions.add(function(function)));
        }
        putNodes(stated, first, "");
        return stated;
    }

    private ObjectNode function(GraphFunction function) {
        ObjectNode stated = Json.object();
        if (!function.name().isEmpty()) {
            stated.put("name", function.name());
        }
        putNodes(stated, function.body().nodes(), "functions." + function.index() + ".");
        ArrayNode outputs = stated.putArray("outputs");
        function.outputs().forEach(output -> outputs.add(output.id()));
        return stated;
    }

    private void putNodes(ObjectNode stated, List<Node> nodes, String within) {
        ArrayNode list = stated.putArray("nodes");
        nodes.forEach(node -> list.add(node(node, within + "constants." + node.id())));
    }

    /** Returns a node, and names its tensor if it is beside the JSON. */
    private ObjectNode node(Node node, String where) {
        ObjectNode stated = Json.object().put("op", node.op());
        if (node.operands().length > 0) {
            stated.set("operands", Json.plain(node.operands()));
        }
        if (!node.name().isEmpty()) {
            stated.put("name", node.name());
        }
        ObjectNode attrs = node.attrs().deepCopy();
        node.tensors().forEach((name, tensor) -> placed.add(new Placed(tensor, where, attrs, name)));
        if (!attrs.isEmpty() || !node.tensors().isEmpty()) {
            stated.set("attrs", attrs);
        }
        return stated;
    }

    /** Writes the arguments of a call. */
    void fill(Graph graph, int count, Asked asked) {
        asked.of.ifPresent(of -> fields.put("of", id(graph, "of", of)));
        asked.lists.forEach((name, nodes) -> {
            ArrayNode list = fields.putArray(name);
            nodes.forEach(node -> list.add(id(graph, name, node)));
        });
        asked.tensors.forEach((role, tensors) -> fillTensors(graph, role, tensors));
        asked.cotangent.ifPresent(cotangent -> {
            int of = asked.of.map(Node::id).orElse(count - 1);
            placed.add(new Placed(cotangent, "cotangents." + of, fields, "cotangent"));
        });
        if (!asked.store.isEmpty()) {
            fillEntries(graph, "store", asked.store, Message::fillStore);
        }
        asked.types.ifPresent(types -> fillEntries(graph, "types", types, (type, entry) -> {
            entry.put("dtype", type.dtype());
            entry.set("shape", Json.array(type.shape()));
        }));
        asked.values.forEach((name, value) -> fields.set(name, Json.plain(value)));
    }

    private static int id(Graph graph, String role, Node node) {
        try {
            return graph.owned(node).id();
        } catch (InputException wrong) {
            throw new InputException(role + ": " + wrong.getMessage());
        }
    }

    private void fillTensors(Graph graph, String role, Map<Node, ? extends Value> tensors) {
        fillEntries(graph, role, tensors, (value, entry) -> {
            if (value instanceof Resident resident) {
                entry.put("tensor_id", resident.name());
            } else if (value instanceof Rows rows) {
                entry.put("tensor_id", rows.name());
                entry.putArray("rows").add(rows.start()).add(rows.stop());
            } else if (value instanceof Tensor tensor) {
                placed.add(new Placed(tensor, role + "." + entry.get("node"), entry, "tensor"));
            } else {
                throw new InputException(role + ": the tensor for node " + entry.get("node") + " is null");
            }
        });
    }

    private static void fillStore(Store store, ObjectNode entry) {
        entry.put("tensor_id", store.name());
        store.ifMatch().ifPresent(etag -> entry.put("if_match", etag));
        store.durable().ifPresent(durable -> entry.put("durable", durable));
        if (store.isGradient()) {
            entry.put("gradient", true);
        }
    }

    /** Writes a list with an entry for each node, in order of ids. */
    private <T> void fillEntries(Graph graph, String role, Map<Node, ? extends T> of, BiConsumer<T, ObjectNode> fill) {
        of.keySet().forEach(node -> id(graph, role, node));
        ArrayNode list = fields.putArray(role);
        of.keySet().stream().sorted(Comparator.comparingInt(Node::id)).forEach(node ->
            fill.accept(of.get(node), list.addObject().put("node", node.id())));
    }
}
