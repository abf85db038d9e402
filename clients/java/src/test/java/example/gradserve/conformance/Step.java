package example.gradserve.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import example.gradserve.DType;
import example.gradserve.Graph;
import example.gradserve.GraphFunction;
import example.gradserve.Node;
import example.gradserve.Tensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.DoubleConsumer;
import java.util.function.Function;
import java.util.function.LongConsumer;

/** A call of the builder. Absent members are null, and consumers are not called for them. */
record Step(String op, String name, List<Node> operands, JsonNode attrs, List<GraphFunction> functions) {
    /** Builds the graph of some steps. */
    static Graph graph(JsonNode of) {
        Graph graph = of.has("opset") ? new Graph(of.get("opset").intValue()) : new Graph();
        for (JsonNode function : of.path("functions")) {
            graph.function(function.path("name").asText(""), body -> {
                append(body, graph, function.get("steps"));
                return nodes(body, graph, function.get("outputs"));
            });
        }
        append(graph, graph, of.get("steps"));
        return graph;
    }

    /** Appends steps to a graph, or to a function of the enclosing graph. */
    private static void append(Graph graph, Graph around, JsonNode steps) {
        for (JsonNode stated : steps) {
            List<Node> operands = nodes(graph, around, stated.path("operands"));
            String name = stated.path("name").asText("");
            Step step = new Step(stated.get("op").asText(), name, operands, stated.path("attrs"), graph.functions());
            // The method of a node of another graph would append to that graph.
            boolean isOfAnother = !operands.isEmpty() && operands.get(0).graph() != graph;
            (isOfAnother ? step.any(graph) : Ops.appended(graph, step)).named(step.name);
        }
    }

    private static List<Node> nodes(Graph graph, Graph around, JsonNode places) {
        List<Node> nodes = new ArrayList<>();
        places.forEach(place ->
            nodes.add(place.asText().equals("outer") ? around.input("outer") : node(graph, place)));
        return nodes;
    }

    /** Returns the node at a position, or a node of another graph. */
    static Node node(Graph graph, JsonNode place) {
        return place.isTextual() ? new Graph().input("") : graph.node(place.intValue());
    }

    Node operand(int place) {
        return place < operands.size() ? operands.get(place) : null;
    }

    void operand(int place, Consumer<Node> into) {
        into.accept(operand(place));
    }

    List<Node> operandsFrom(int place) {
        return operands.subList(place, operands.size());
    }

    /** Appends an op by name. */
    Node any(Graph graph) {
        Map<String, Object> stated = new LinkedHashMap<>();
        attrs.fieldNames().forEachRemaining(name -> stated.put(name, value(name)));
        return graph.op(op, operands, stated);
    }

    private <T> T read(String name, Function<JsonNode, T> reader) {
        return attrs.has(name) ? reader.apply(attrs.get(name)) : null;
    }

    private static <T> void tell(T value, Consumer<T> into) {
        if (value != null) {
            into.accept(value);
        }
    }

    Object value(String name) {
        return read(name, this::value);
    }

    private Object value(JsonNode stated) {
        return stated.has("function") ? function(stated) : Values.of(stated);
    }

    /** Returns a function by index, or a function of another graph. */
    private GraphFunction function(JsonNode stated) {
        JsonNode index = stated.get("function");
        return index.isInt()
            ? functions.get(index.intValue())
            : new Graph().function(body -> List.of(body.input("")));
    }

    GraphFunction function(String name) {
        return read(name, this::function);
    }

    void function(String name, Consumer<GraphFunction> into) {
        tell(function(name), into);
    }

    Boolean truth(String name) {
        return read(name, JsonNode::booleanValue);
    }

    void truth(String name, Consumer<Boolean> into) {
        tell(truth(name), into);
    }

    Long whole(String name) {
        return read(name, stated -> ((Number) Values.of(stated)).longValue());
    }

    void whole(String name, LongConsumer into) {
        tell(whole(name), into::accept);
    }

    long[] wholes(String name) {
        return read(name, stated -> ((List<?>) Values.of(stated)).stream()
            .mapToLong(each -> ((Number) each).longValue()).toArray());
    }

    void wholes(String name, Consumer<long[]> into) {
        tell(wholes(name), into);
    }

    Double real(String name) {
        return read(name, stated -> ((Number) Values.of(stated)).doubleValue());
    }

    void real(String name, DoubleConsumer into) {
        tell(real(name), into::accept);
    }

    Number number(String name) {
        return read(name, stated -> (Number) Values.of(stated));
    }

    void number(String name, Consumer<Number> into) {
        tell(number(name), into);
    }

    String text(String name) {
        return read(name, JsonNode::textValue);
    }

    void text(String name, Consumer<String> into) {
        tell(text(name), into);
    }

    DType dtype(String name) {
        return read(name, stated -> DType.of(stated.textValue()));
    }

    void dtype(String name, Consumer<DType> into) {
        tell(dtype(name), into);
    }

    Tensor tensor(String name) {
        return read(name, Bits::tensor);
    }
}
