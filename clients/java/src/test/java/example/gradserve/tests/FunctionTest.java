package example.gradserve.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import example.gradserve.DType;
import example.gradserve.Graph;
import example.gradserve.GraphFunction;
import example.gradserve.InputException;
import example.gradserve.MalformedAnswerException;
import example.gradserve.Node;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class FunctionTest {
    private final Graph graph = new Graph();

    private static JsonNode sent(Graph graph) throws IOException {
        return new ObjectMapper().readTree(graph.toJson());
    }

    /** A step of a decay. */
    private static GraphFunction euler(Graph graph) {
        return graph.function("euler", body -> {
            Node k = body.input("k");
            Node y = body.input("y");
            Node next = y.plus(k.times(y).times(-0.5));
            return List.of(next, next);
        });
    }

    private static String refused(Runnable writing) {
        return assertThrows(InputException.class, writing::run).getMessage();
    }

    @Test
    void aFunctionIsSentWithItsGraph() throws IOException {
        GraphFunction euler = euler(graph);
        List<Node> operands = List.of(graph.parameter("k"), graph.input("y0"));
        graph.scan(euler, operands, o -> o.carries(1).length(4)).getOutput(1).sum();
        String wanted = """
            {"opset": 2,
             "functions": [{"name": "euler", "outputs": [4, 4], "nodes": [
               {"op": "input", "name": "k"},
               {"op": "input", "name": "y"},
               {"op": "mul", "operands": [0, 1]},
               {"op": "mul_scalar", "operands": [2], "attrs": {"scalar": -0.5}},
               {"op": "add", "operands": [1, 3]}]}],
             "nodes": [
               {"op": "parameter", "name": "k"},
               {"op": "input", "name": "y0"},
               {"op": "scan", "operands": [0, 1], "attrs": {"carries": 1, "length": 4, "body": 0}},
               {"op": "get_output", "operands": [2], "attrs": {"index": 1}},
               {"op": "sum", "operands": [3]}]}""";
        assertEquals(new ObjectMapper().readTree(wanted), sent(graph));
        assertEquals(graph.toJson(), Graph.fromJson(graph.toJson()).toJson());
    }

    @Test
    void aHandleSaysWhatTheFunctionTakesAndGives() {
        GraphFunction twice =
            graph.function(body -> List.of(body.input("", o -> o.dtype(DType.FLOAT32)).times(2)));
        GraphFunction euler = euler(graph);
        assertEquals(0, twice.index());
        assertEquals("", twice.name());
        assertEquals("function 1 ('euler')", euler.toString());
        assertEquals(List.of("k", "y"), euler.parameters().stream().map(Node::name).toList());
        assertEquals(List.of(4, 4), euler.outputs().stream().map(Node::id).toList());
        assertSame(euler.body(), euler.outputs().get(0).graph());
        assertEquals(List.of(twice, euler), graph.functions());
        assertTrue(graph.nodes().isEmpty());
    }

    @Test
    void aFunctionUsesThoseBeforeItAndThoseWithinIt() throws IOException {
        GraphFunction twice = graph.function("twice", body -> List.of(body.input("").times(2)));
        GraphFunction outer = graph.function("outer", body -> {
            GraphFunction inner = body.function("inner", each -> List.of(each.input("").neg()));
            Node doubled = body.call(twice, List.of(body.input(""))).getOutput(0);
            return List.of(body.op("call", List.of(doubled), Map.of("body", inner)).getOutput(0));
        });
        assertEquals(2, outer.index());
        JsonNode functions = sent(graph).get("functions");
        assertEquals("inner", functions.get(1).get("name").asText());
        assertEquals(0, functions.get(2).get("nodes").get(1).get("attrs").get("body").asInt());
        assertEquals(1, functions.get(2).get("nodes").get(3).get("attrs").get("body").asInt());
        assertEquals(outer.body().functions(), graph.functions());
    }

    @Test
    void aFunctionSeesOnlyWhatIsPassedToIt() {
        Node k = graph.parameter("k");
        assertEquals(
            "node 1 (mul) of the function 'f': node 0 (parameter, 'k') is outside this function, which can use only "
                + "the operands passed to it",
            refused(() -> graph.function("f", body -> List.of(body.input("y").times(k)))));
        assertEquals(
            "node 1 (mul): node 0 (input, 'y') of the function 'f' is inside a function, and only the function's "
                + "results can be used outside it",
            refused(() -> graph.function("f", body -> List.of(k.times(body.input("y"))))));
        assertEquals(
            "an output of a function: node 0 (parameter, 'k') is outside this function, which can use only the "
                + "operands passed to it",
            refused(() -> graph.function(body -> List.of(k))));
        assertTrue(graph.functions().isEmpty());
    }

    @Test
    void aFunctionBelongsToOneGraph() {
        GraphFunction euler = euler(new Graph());
        Node x = graph.input("x");
        assertEquals(
            "node 1 (call): function 0 ('euler') belongs to another graph",
            refused(() -> graph.call(euler, List.of(x))));
    }

    @Test
    void aFunctionIsComplete() {
        AtomicReference<Node> kept = new AtomicReference<>();
        graph.function(body -> {
            kept.set(body.input("y"));
            return List.of(kept.get());
        });
        assertEquals("node 1 (tanh) of a function: the function is complete", refused(() -> kept.get().tanh()));
        String wanted = "a function cannot be sent by itself; send the graph that contains it";
        assertEquals(wanted, refused(() -> kept.get().graph().toJson()));
    }

    @Test
    void aGraphSaysTheOpsetThatItsFunctionsNeed() throws IOException {
        for (Graph each : List.of(graph, new Graph(3))) {
            each.function(body -> List.of(body.input("")));
            assertEquals(each.opset().orElse(2), sent(each).get("opset").asInt());
        }
    }

    @Test
    void whatIsNoFunctionIsRefused() {
        for (String functions : List.of("1", "[1]", "[{}]", "[{\"nodes\":[],\"outputs\":[0]}]", "[{\"nodes\":[],\"outputs\":1}]")) {
            String text = "{\"nodes\":[],\"functions\":" + functions + "}";
            assertThrows(MalformedAnswerException.class, () -> Graph.fromJson(text), text);
        }
    }
}
