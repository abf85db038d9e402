package example.gradserve;

import java.util.Iterator;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.Stream;

/** The opset of a graph. The server treats a graph without one as opset 1, and rejects newer ops in it. */
final class Opset {
    /** The opset of a graph that states none. */
    private static final int FIRST = 1;
    /** The first opset with functions. */
    private static final int OF_FUNCTIONS = 2;

    private Opset() {}

    /**
     * Returns the lowest opset with all ops, attributes and dtypes of nodes and functions; empty if the graph need not
     * state it.
     */
    static OptionalInt needed(List<Node> nodes, List<GraphFunction> functions) {
        Stream<Node> ofFunctions = functions.stream().flatMap(function -> function.body().nodes().stream());
        OptionalInt ofNodes = Stream.concat(nodes.stream(), ofFunctions).mapToInt(Opset::needed).max();
        int needed = Math.max(ofNodes.orElse(FIRST), functions.isEmpty() ? FIRST : OF_FUNCTIONS);
        return needed > FIRST ? OptionalInt.of(needed) : OptionalInt.empty();
    }

    private static int needed(Node node) {
        int needed = GraphOps.since(node.op());
        for (Iterator<String> names = node.attrs().fieldNames(); names.hasNext(); ) {
            needed = Math.max(needed, GraphOps.since(node.op() + "." + names.next()));
        }
        int ofDtype = since(node.attrs().path("dtype").asText());
        int ofTensors = node.tensors().values().stream().mapToInt(tensor -> tensor.dtype().since).max().orElse(FIRST);
        return Math.max(needed, Math.max(ofDtype, ofTensors));
    }

    private static int since(String word) {
        for (DType dtype : DType.values()) {
            if (dtype.word().equals(word)) {
                return dtype.since;
            }
        }
        return FIRST;
    }
}
