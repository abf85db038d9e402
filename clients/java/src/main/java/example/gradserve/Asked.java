package example.gradserve;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The arguments of a call except the graph. */
final class Asked {
    Optional<Form> form = Optional.empty();
    Optional<Duration> timeout = Optional.empty();
    Optional<Boolean> idempotency = Optional.empty();
    /** The node to differentiate. */
    Optional<Node> of = Optional.empty();
    /** The weights of its elements. */
    Optional<Tensor> cotangent = Optional.empty();
    /** Feeds and other tensors by node, by API names. */
    final Map<String, Map<Node, ? extends Value>> tensors = new LinkedHashMap<>();
    final Map<Node, Store> store = new LinkedHashMap<>();
    Optional<Map<Node, TensorType>> types = Optional.empty();
    /** Lists of nodes, by API names. */
    final Map<String, List<Node>> lists = new LinkedHashMap<>();
    /** Arguments that are sent unchanged. */
    final Map<String, Object> values = new LinkedHashMap<>();

    /** Returns whether a feed is a resident tensor. */
    boolean feedsResidents() {
        return tensors.getOrDefault("feeds", Map.of()).values().stream().anyMatch(value -> !(value instanceof Tensor));
    }
}
