package example.gradserve.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import example.gradserve.Answer;
import example.gradserve.CallOptions;
import example.gradserve.Client;
import example.gradserve.Computable;
import example.gradserve.HessianLayout;
import example.gradserve.Node;
import example.gradserve.Precision;
import example.gradserve.Reduction;
import example.gradserve.Resident;
import example.gradserve.RunOptions;
import example.gradserve.Store;
import example.gradserve.TensorType;
import example.gradserve.Value;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.StreamSupport;

/** A call of a case on a graph. */
record Call(JsonNode stated, Computable on) {
    Answer answer(Client client) {
        return switch (stated.get("do").textValue()) {
            case "forward" -> client.forward(on, values("feeds"), this::run);
            case "gradients" -> client.gradients(on, values("feeds"), o -> {
                run(o);
                node("of", o::of);
                nodes("wrt", o::wrt);
                tell("cotangent", Bits::tensor, o::cotangent);
            });
            case "vjp" -> client.vjp(on, values("feeds"), values("cotangents"), o -> {
                run(o);
                nodes("wrt", o::wrt);
                tell("batched", JsonNode::booleanValue, o::batched);
            });
            case "jvp" -> client.jvp(on, values("feeds"), values("tangents"), this::run);
            case "jacobian" -> client.jacobian(on, values("feeds"), o -> {
                run(o);
                nodes("wrt", o::wrt);
            });
            case "hvp" -> client.hvp(on, values("feeds"), values("vectors"), o -> {
                run(o);
                node("of", o::of);
                nodes("wrt", o::wrt);
            });
            case "hessian" -> client.hessian(on, values("feeds"), o -> {
                run(o);
                node("of", o::of);
                nodes("wrt", o::wrt);
                tell("layout", Call::layout, o::layout);
            });
            case "batch" -> client.batch(on, values("feeds"), o -> {
                run(o);
                node("of", o::of);
                nodes("wrt", o::wrt);
                nodes("mapped", o::mapped);
                tell("reduce", Call::reduction, o::reduce);
                tell("block", JsonNode::longValue, o::block);
            });
            case "check" -> client.check(on, values("feeds"), o -> {
                form(o);
                node("of", o::of);
                nodes("wrt", o::wrt);
                tell("directions", JsonNode::intValue, o::directions);
                tell("tolerance", JsonNode::doubleValue, o::tolerance);
                tell("memory_budget", JsonNode::longValue, o::memoryBudget);
                tell("precision", Call::precision, o::precision);
            });
            case "plan" -> client.plan(on, types(), o -> {
                form(o);
                tell("call", JsonNode::textValue, o::call);
                node("of", o::of);
                nodes("wrt", o::wrt);
                nodes("mapped", o::mapped);
                tell("reduce", Call::reduction, o::reduce);
                tell("block", JsonNode::longValue, o::block);
                nodes("outputs", o::outputs);
                tell("memory_budget", JsonNode::longValue, o::memoryBudget);
                tell("precision", Call::precision, o::precision);
            });
            case "differentiate" -> client.differentiate(on, types(), o -> {
                form(o);
                node("of", o::of);
                nodes("wrt", o::wrt);
            });
            default -> throw new IllegalArgumentException("no such call");
        };
    }

    private void form(CallOptions<?> options) {
        Conversation.form(stated).ifPresent(options::form);
    }

    private void run(RunOptions<?> options) {
        form(options);
        nodes("outputs", options::outputs);
        tell("diagnose", JsonNode::booleanValue, options::diagnose);
        tell("memory_budget", JsonNode::longValue, options::memoryBudget);
        tell("precision", Call::precision, options::precision);
        for (JsonNode entry : stated.path("store")) {
            Store store = new Store(entry.get("tensor_id").textValue());
            store = entry.has("if_match") ? store.ifMatch(entry.get("if_match").textValue()) : store;
            store = entry.has("durable") ? store.durable(entry.get("durable").booleanValue()) : store;
            store = entry.path("gradient").booleanValue() ? store.gradient() : store;
            options.store(node(entry), store);
        }
    }

    private static Reduction reduction(JsonNode word) {
        return Reduction.valueOf(word.textValue().toUpperCase(Locale.ROOT));
    }

    private static HessianLayout layout(JsonNode word) {
        return HessianLayout.valueOf(word.textValue().toUpperCase(Locale.ROOT));
    }

    private static Precision precision(JsonNode word) {
        return Precision.valueOf(word.textValue().toUpperCase(Locale.ROOT));
    }

    private <T> void tell(String name, Function<JsonNode, T> read, Consumer<T> into) {
        if (stated.has(name)) {
            into.accept(read.apply(stated.get(name)));
        }
    }

    private Node node(JsonNode entry) {
        return Step.node(on.graph(), entry.get("node"));
    }

    private void node(String name, Consumer<Node> into) {
        tell(name, place -> Step.node(on.graph(), place), into);
    }

    private void nodes(String name, Consumer<Node[]> into) {
        tell(name, places -> StreamSupport.stream(places.spliterator(), false)
            .map(place -> Step.node(on.graph(), place)).toArray(Node[]::new), into);
    }

    private Map<Node, Value> values(String role) {
        Map<Node, Value> values = new LinkedHashMap<>();
        for (JsonNode entry : stated.path(role)) {
            values.put(node(entry), value(entry));
        }
        return values;
    }

    private static Value value(JsonNode entry) {
        if (!entry.has("tensor_id")) {
            return Bits.tensor(entry.get("tensor"));
        }
        Resident kept = new Resident(entry.get("tensor_id").textValue());
        JsonNode rows = entry.path("rows");
        return rows.isArray() ? kept.rows(rows.get(0).longValue(), rows.get(1).longValue()) : kept;
    }

    private Map<Node, TensorType> types() {
        Map<Node, TensorType> types = new LinkedHashMap<>();
        for (JsonNode entry : stated.path("types")) {
            types.put(node(entry), new TensorType(entry.get("dtype").textValue(), Bits.shape(entry.get("shape"))));
        }
        return types;
    }
}
