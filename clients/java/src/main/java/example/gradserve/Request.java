package example.gradserve;

import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/** A request to send. A request that {@code keeps} (stores) something is retried only under an Idempotency-Key. */
record Request(
    String method, String path, Map<String, String> query, Map<String, String> headers, Body body, boolean keeps) {

    Request withPath(String other) {
        return new Request(method, other, query, headers, body, keeps);
    }

    Request withHeader(String name, String value) {
        Map<String, String> more = new LinkedHashMap<>(headers);
        more.put(name, value);
        return new Request(method, path, query, more, body, keeps);
    }

    /** Returns the path and the query with the remaining time. */
    String target(Optional<Duration> left) {
        Map<String, String> stated = new LinkedHashMap<>(query);
        left.ifPresent(time -> stated.put("timeout_ms", String.valueOf(Math.max(1, time.toMillis()))));
        return stated.isEmpty() ? path : path + "?" + stated.entrySet().stream()
            .map(each -> each.getKey() + "=" + URLEncoder.encode(each.getValue(), StandardCharsets.UTF_8))
            .collect(Collectors.joining("&"));
    }

    /** Builds a call on the first nodes of a graph. The nodes of a registered graph are not sent. */
    static Request computing(String call, Computable on, Asked asked) {
        try {
            Message message = new Message();
            if (on instanceof Graph) {
                message.fields.set("graph", message.graph(on.graph(), on.nodeCount()));
            }
            message.fill(on.graph(), on.nodeCount(), asked);
            Form form = message.form(asked.form);
            if (form != Form.SAFETENSORS) {
                message.fields.put("encoding", form.word());
            }
            Body body = message.body(form);
            // The response uses the encoding of the request. If a feed is a resident tensor, results may be large, so
            // the client asks for safetensors.
            boolean isFile = form == Form.SAFETENSORS || asked.feedsResidents() && asked.form.isEmpty();
            Map<String, String> headers = sent(body, isFile ? Media.SAFETENSORS : Media.JSON);
            return new Request("POST", "/v1/" + call, Map.of(), headers, body, !asked.store.isEmpty());
        } catch (InputException wrong) {
            throw new InputException(call + ": " + wrong.getMessage());
        }
    }

    private static Map<String, String> sent(Body body, String accepted) {
        return Map.of("Content-Type", body.media(), "Accept", accepted);
    }

    /** Builds the request that registers a graph. Repeating it changes nothing. */
    static Request registering(Graph graph, RegisterOptions options) {
        Message message = new Message();
        if (!options.description.isEmpty()) {
            message.fields.put("description", options.description);
        }
        message.fields.set("graph", message.graph(graph, graph.nodeCount()));
        Body body = message.body(message.form(options.form));
        return new Request("POST", "/v1/graphs", Map.of(), sent(body, Media.JSON), body, false);
    }

    /** Builds the request that stores a tensor. Without a condition, repeating it changes nothing. */
    static Request putting(String name, Tensor tensor, PutOptions options) {
        if (tensor == null) {
            throw new InputException("cannot put '" + name + "': the tensor is null");
        }
        Form form = options.form.orElseGet(() -> Form.usualOf(tensor));
        Body body = form == Form.SAFETENSORS
            ? new Body(Media.SAFETENSORS, new Safetensors(Map.of("tensor", tensor), Map.of()).pieces())
            : new Body(Media.JSON, List.of(ByteBuffer.wrap(Json.bytes(TensorJson.encoded(tensor, form)))));
        Map<String, String> headers = conditions(options.ifMatch, options.ifNoneMatch);
        boolean keeps = !headers.isEmpty();
        headers.putAll(sent(body, Media.JSON));
        Map<String, String> query =
            options.durable.map(durable -> Map.of("durable", durable.toString())).orElse(Map.of());
        return new Request("PUT", tensorPath(name), query, headers, body, keeps);
    }

    /** Builds the request that stores a model. Without a condition, repeating it changes nothing. */
    static Request puttingModel(String name, ModelDefinition definition, PutModelOptions options) {
        Body body = new Body(Media.JSON, List.of(ByteBuffer.wrap(definition.bytes())));
        Map<String, String> headers = conditions(options.ifMatch, options.ifNoneMatch);
        boolean keeps = !headers.isEmpty();
        headers.putAll(sent(body, Media.JSON));
        return new Request("PUT", modelPath(name), Map.of(), headers, body, keeps);
    }

    /** Builds the request that downloads a tensor, as safetensors unless another form is given. */
    static Request getting(String name, GetOptions options) {
        Map<String, String> headers = conditions(options.ifMatch, options.ifNoneMatch);
        Optional<Form> text = options.form.filter(form -> form != Form.SAFETENSORS);
        headers.put("Accept", text.isPresent() ? Media.JSON : Media.SAFETENSORS);
        Map<String, String> query = text.map(form -> Map.of("encoding", form.word())).orElse(Map.of());
        return new Request("GET", tensorPath(name), query, headers, Body.NONE, false);
    }

    static Request reading(String path) {
        return new Request("GET", path, Map.of(), Map.of("Accept", Media.JSON), Body.NONE, false);
    }

    static Request deleting(String path, String ifMatch) {
        return new Request("DELETE", path, Map.of(), conditions(ifMatch, ""), Body.NONE, true);
    }

    /** Builds the request for a page, which starts after an entry. */
    static Request listing(String kind, ListOptions options) {
        Map<String, String> query = new LinkedHashMap<>();
        options.limit.ifPresent(limit -> query.put("limit", String.valueOf(limit)));
        options.after.ifPresent(after -> query.put("after", after));
        return new Request("GET", "/v1/" + kind, query, Map.of("Accept", Media.JSON), Body.NONE, false);
    }

    static String tensorPath(String name) {
        return path("tensors", name);
    }

    static String graphPath(String id) {
        return path("graphs", id);
    }

    static String modelPath(String name) {
        return path("models", name);
    }

    /** Returns a path. Fails for an empty name, whose path would be that of the listing. */
    private static String path(String kind, String name) {
        if (name.isEmpty()) {
            throw new InputException("the name must not be empty");
        }
        return "/v1/" + kind + "/" + URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
    }

    private static Map<String, String> conditions(String ifMatch, String ifNoneMatch) {
        Map<String, String> headers = new LinkedHashMap<>();
        Map.of("If-Match", ifMatch, "If-None-Match", ifNoneMatch).forEach((name, etag) -> {
            if (!etag.isEmpty()) {
                headers.put(name, etag.equals("*") ? etag : '"' + etag + '"');
            }
        });
        return headers;
    }
}
