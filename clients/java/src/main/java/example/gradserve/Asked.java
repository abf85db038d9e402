package example.gradserve;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** What a call is asked beside its graph. */
final class Asked {
    Optional<Form> form = Optional.empty();
    Optional<Duration> timeout = Optional.empty();
    Optional<Boolean> idempotency = Optional.empty();
    /** The node that is differentiated. */
    Optional<Node> of = Optional.empty();
    /** The weights of its elements. */
    Optional<Tensor> cotangent = Optional.empty();
    /** Feeds, and what else has tensors for nodes, by names on the wire. */
    final Map<String, Map<Node, ? extends Value>> tensors = new LinkedHashMap<>();
    final Map<Node, Store> store = new LinkedHashMap<>();
    Optional<Map<Node, TensorType>> types = Optional.empty();
    /** Lists of nodes, by names on the wire. */
    final Map<String, List<Node>> lists = new LinkedHashMap<>();
    /** What is sent as it is. */
    final Map<String, Object> values = new LinkedHashMap<>();

    /** Whether a tensor that is fed stays with the server. */
    boolean feedsResidents() {
        return tensors.getOrDefault("feeds", Map.of()).values().stream().anyMatch(value -> !(value instanceof Tensor));
    }
}
