package example.gradserve.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import example.gradserve.DType;
import example.gradserve.Graph;
import example.gradserve.InputException;
import example.gradserve.MalformedAnswerException;
import example.gradserve.Node;
import example.gradserve.Tensor;
import java.io.IOException;
import java.math.BigInteger;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class GraphTest {
    private final Graph graph = new Graph();
    private final Node x = graph.input("x");

    private String sent(Node node) throws IOException {
        return new ObjectMapper().readTree(graph.toJson()).get("nodes").get(node.id()).toString();
    }

    @Test
    void arithmeticHasWords() {
        Node y = graph.input("");
        List<Node> made = List.of(
            x.plus(y), x.plus(1), x.minus(y), x.minus(1), x.times(y), x.times(2), x.div(y), x.div(2), x.pow(y), x.pow(2), x.rem(y),
            x.unaryMinus());
        assertEquals(
            List.of("add", "add_scalar", "sub", "sub_scalar", "mul", "mul_scalar", "div", "div_scalar", "pow", "pow_scalar", "mod",
                "neg"),
            made.stream().map(Node::op).toList());
    }

    @Test
    void whatIsNotStatedIsNotSent() throws IOException {
        assertEquals("{\"op\":\"sum\",\"operands\":[0]}", sent(x.sum()));
        assertEquals(
            "{\"op\":\"sum\",\"operands\":[0],\"attrs\":{\"axes\":[0],\"keepdims\":true}}",
            sent(x.sum(o -> o.axes(0).keepdims(true))));
    }

    @Test
    void operandsThatMayBeLeftOutAreGivenEitherWay() throws IOException {
        assertEquals("{\"op\":\"linear\",\"operands\":[0,0]}", sent(x.linear(x)));
        assertEquals("{\"op\":\"linear\",\"operands\":[0,0,0]}", sent(x.linear(x, x)));
        assertEquals("{\"op\":\"linear\",\"operands\":[0,0,0]}", sent(x.linear(x, o -> o.b(x))));
        assertThrows(InputException.class, () -> x.layerNorm(null, x));
    }

    @Test
    void numbersKeepAllOfTheirDigits() throws IOException {
        long beyond = (1L << 53) + 1;
        assertTrue(sent(graph.full(new long[] {1}, o -> o.fill(beyond).dtype(DType.INT64))).contains("9007199254740993"));
        Node newer = graph.op("newer", List.of(x), Map.of("n", BigInteger.TWO.pow(70), "m", new double[] {-0.0}));
        assertTrue(sent(newer).contains("1180591620717411303424"));
        assertTrue(sent(newer).contains("-0.0"));
    }

    @Test
    void whatIsWrongNamesTheOp() {
        Node stranger = new Graph().input("");
        InputException refused = assertThrows(InputException.class, () -> x.add(stranger));
        assertEquals("node 1 (add): node 0 (input) belongs to another graph", refused.getMessage());
        assertThrows(InputException.class, () -> x.addScalar(Double.NaN));
        assertThrows(InputException.class, () -> graph.op("newer", List.of(), Map.of("a", new Object())));
        assertEquals(1, graph.nodes().size());
    }

    @Test
    void nodesAreFound() {
        Node loss = x.sum().named("loss");
        assertSame(loss, graph.node("loss"));
        assertSame(x, graph.node(0));
        assertThrows(InputException.class, () -> graph.node("nothing"));
        assertThrows(InputException.class, () -> graph.node(""));
        assertThrows(InputException.class, () -> graph.node(2));
        x.named("loss");
        assertThrows(InputException.class, () -> graph.node("loss"));
    }

    @Test
    void aNodeKnowsWhereItWasWritten() {
        int line = new Throwable().getStackTrace()[0].getLineNumber();
        assertEquals("GraphTest.java:" + (line + 1), x.tanh().line());
        assertEquals("", Graph.fromJson(graph.toJson()).node(0).line());
    }

    @Test
    void graphsAreReadAsTheyAreWritten() {
        graph.constant(Tensor.vector(1, Double.NaN)).times(x).reshape(2, 1).named("column");
        assertEquals(graph.toJson(), Graph.fromJson(graph.toJson()).toJson());
        assertEquals(2, Graph.fromJson(new Graph(2).toJson()).opset().getAsInt());
    }

    @Test
    void aGraphSaysWhichOpsetItNeedsUnlessItsProgramSaysWhichItIsOf() {
        Map<Integer, List<Consumer<Graph>>> written = Map.of(
            2,
            List.of(
                each -> each.input("seed").randomKey(),
                each -> each.op("random_key", List.of(each.input("seed")), Map.of()),
                each -> each.parameter("key", o -> o.dtype(DType.UINT32)),
                each -> each.input("x").cast(DType.UINT32),
                each -> each.parameter("z", o -> o.dtype(DType.COMPLEX64)),
                each -> each.constant(Tensor.uint32(new int[] {0, -1}, 2))),
            0,
            List.of(
                each -> each.input("x").cast(DType.INT32),
                each -> each.op("new", List.of(), Map.of("dtype", "float8", "word", "uint32"))));
        written.forEach((opset, writing) -> writing.forEach(write -> {
            Graph usual = new Graph();
            Graph stated = new Graph(1);
            write.accept(usual);
            write.accept(stated);
            assertEquals(opset, Graph.fromJson(usual.toJson()).opset().orElse(0));
            assertEquals(1, Graph.fromJson(stated.toJson()).opset().getAsInt());
        }));
    }

    @Test
    void graphsThatAreNoneAreRefused() {
        for (String text : List.of("", "[]", "{}", "{\"nodes\":[1]}", "{\"nodes\":[{\"op\":\"abs\",\"operands\":[0]}]}",
            "{\"nodes\":[{\"op\":\"input\"},{\"op\":\"abs\",\"operands\":[4294967296]}]}", "{\"nodes\":[]} {}")) {
            assertThrows(MalformedAnswerException.class, () -> Graph.fromJson(text), text);
        }
    }
}
