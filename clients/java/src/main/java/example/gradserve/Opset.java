package example.gradserve;

import java.util.List;
import java.util.OptionalInt;

/** The opset that a graph says it is of: a server takes one that says nothing for the first, and has no more in it. */
final class Opset {
    /** Of a graph that does not say. */
    private static final int FIRST = 1;

    private Opset() {}

    /** The first that has all ops and dtypes of some nodes; empty where nothing is to be said. */
    static OptionalInt needed(List<Node> nodes) {
        OptionalInt needed = nodes.stream().mapToInt(Opset::needed).max();
        return needed.orElse(FIRST) > FIRST ? needed : OptionalInt.empty();
    }

    private static int needed(Node node) {
        int ofDtype = since(node.attrs().path("dtype").asText());
        int ofTensors = node.tensors().values().stream().mapToInt(tensor -> tensor.dtype().since).max().orElse(FIRST);
        return Math.max(GraphOps.since(node.op()), Math.max(ofDtype, ofTensors));
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
