package example.gradserve.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import example.gradserve.Catalogue;
import example.gradserve.Client;
import example.gradserve.ClientBuilder;
import example.gradserve.Computable;
import example.gradserve.Form;
import example.gradserve.Graph;
import example.gradserve.ModelDefinition;
import example.gradserve.RegisteredGraph;
import example.gradserve.ResidentTensor;
import example.gradserve.Surroundings;
import example.gradserve.TensorType;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/** The calls of a case, made by one client whose clock advances only when it waits. */
final class Conversation implements Surroundings {
    private final JsonNode stated;
    private final List<Long> waits = new ArrayList<>();
    private final Map<List<JsonNode>, Graph> graphs = new HashMap<>();
    private final Map<Graph, RegisteredGraph> registered = new HashMap<>();
    private Client client;
    private Duration now = Duration.ZERO;
    private int keys;

    Conversation(JsonNode stated) {
        this.stated = stated;
    }

    /** If the server is scripted, injects clock, randomness and keys. */
    private Client client() {
        if (client == null) {
            JsonNode settings = stated.path("client");
            ClientBuilder builder = Client.builder(stated.get("url").textValue())
                .timeout(Duration.ofMillis(settings.path("timeout_ms").asLong()))
                .retries(settings.path("retries").asInt(2))
                .idempotency(settings.path("idempotency").asBoolean(true));
            Optional.ofNullable(settings.get("api_key")).ifPresent(key -> builder.apiKey(key.textValue()));
            Optional.ofNullable(settings.get("max_response_bytes"))
                .ifPresent(most -> builder.maxResponseBytes(most.longValue()));
            if (stated.get("kind").textValue().equals("exchange")) {
                builder.surroundings(this);
            }
            client = builder.build();
        }
        return client;
    }

    List<Long> waits() {
        return waits;
    }

    @Override
    public long nanoTime() {
        return now.toNanos();
    }

    @Override
    public CompletableFuture<Void> pause(Duration time) {
        now = now.plus(time);
        waits.add(time.toMillis());
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public double chance() {
        return 0.5;
    }

    @Override
    public String newKey() {
        keys++;
        return "case-" + keys;
    }

    ObjectNode returned(JsonNode call) {
        String name = call.path("name").asText();
        return switch (call.get("do").textValue()) {
            case "register" -> register(call);
            case "put" -> put(call, name);
            case "get" -> got(client().get(name, o -> form(call).ifPresent(o::form)));
            case "delete" -> Telling.handle(client().delete(name, o -> o.ifMatch(call.path("if_match").asText())));
            case "list_tensors" -> {
                ObjectNode made = JsonNodeFactory.instance.objectNode();
                ArrayNode list = made.putArray("tensors");
                client().tensors(o -> limit(call).ifPresent(o::limit)).forEach(each -> list.add(Telling.handle(each)));
                yield made;
            }
            case "list_graphs" -> listedGraphs(call);
            case "put_model" -> putModel(call, name);
            case "get_model" -> Telling.model(client().model(name));
            case "delete_model" ->
                Telling.model(client().deleteModel(name, o -> o.ifMatch(call.path("if_match").asText())));
            case "list_models" -> {
                ObjectNode made = JsonNodeFactory.instance.objectNode();
                ArrayNode list = made.putArray("models");
                client().models(o -> limit(call).ifPresent(o::limit)).forEach(each -> list.add(Telling.model(each)));
                yield made;
            }
            case "delete_graph" -> Telling.summary(client().unregister(graphId(call)));
            case "ops" -> catalogue(client().ops());
            default -> Telling.returned(new Call(call, target(call.get("graph"))).answer(client()));
        };
    }

    static Optional<Form> form(JsonNode call) {
        return Optional.ofNullable(call.get("form"))
            .map(form -> form.textValue().equals("binary") ? Form.SAFETENSORS : Form.JSON);
    }

    private static Optional<Integer> limit(JsonNode call) {
        return Optional.ofNullable(call.get("limit")).map(JsonNode::intValue);
    }

    /** Returns the graph of these steps, functions and opset. Equal ones are the same graph. */
    private Graph graph(JsonNode of) {
        return graphs.computeIfAbsent(List.of(of.get("steps"), of.path("functions"), of.path("opset")), key -> Step.graph(of));
    }

    private Computable target(JsonNode graph) {
        Graph made = graph(graph);
        return graph.path("registered").asBoolean() ? registered.computeIfAbsent(made, client()::registerLater) : made;
    }

    private ObjectNode register(JsonNode call) {
        Graph graph = graph(call);
        registered.put(graph, client().register(graph, o -> o.description(call.path("description").asText())));
        return registered.get(graph).fields();
    }

    private ObjectNode put(JsonNode call, String name) {
        return Telling.handle(client().put(name, Bits.tensor(call.get("tensor")), o -> {
            o.ifMatch(call.path("if_match").asText()).ifNoneMatch(call.path("if_none_match").asText());
            form(call).ifPresent(o::form);
        }));
    }

    private static ObjectNode got(ResidentTensor found) {
        return JsonNodeFactory.instance.objectNode().put("tensor_id", found.handle().name())
            .put("etag", found.handle().etag()).set("tensor", Bits.of(found.tensor()));
    }

    private ObjectNode listedGraphs(JsonNode call) {
        ObjectNode made = JsonNodeFactory.instance.objectNode();
        ArrayNode list = made.putArray("graphs");
        client().graphs(o -> limit(call).ifPresent(o::limit)).forEach(each -> list.add(Telling.summary(each)));
        return made;
    }

    /** Returns the id of a model's graph, which the first call that needs it registers. */
    private String graphId(JsonNode call) {
        if (call.has("graph_id")) {
            return call.get("graph_id").textValue();
        }
        Graph graph = graph(call.get("graph"));
        return registered.computeIfAbsent(graph, client()::register).id().orElseThrow();
    }

    private ObjectNode putModel(JsonNode call, String name) {
        ModelDefinition definition = new ModelDefinition(graphId(call));
        for (JsonNode each : call.get("inputs")) {
            TensorType type = new TensorType(each.get("dtype").textValue(), Bits.shape(each.get("shape")));
            definition.input(each.get("name").textValue(), each.get("node").intValue(), type);
        }
        call.get("outputs").forEach(each ->
            definition.output(each.get("name").textValue(), each.get("node").intValue()));
        call.get("bound").forEach(each ->
            definition.bound(each.get("node").intValue(), each.get("tensor_id").textValue()));
        if (call.has("description")) {
            definition.description(call.get("description").textValue());
        }
        return Telling.model(client().putModel(name, definition, o ->
            o.ifMatch(call.path("if_match").asText()).ifNoneMatch(call.path("if_none_match").asText())));
    }

    private static ObjectNode catalogue(Catalogue catalogue) {
        ObjectNode made = JsonNodeFactory.instance.objectNode().put("opset", catalogue.opset());
        ArrayNode ops = made.putArray("ops");
        catalogue.ops().forEach(op -> ops.add(op.fields()));
        return made;
    }
}
