package example.gradserve.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import example.gradserve.Form;
import example.gradserve.GradserveException;
import example.gradserve.Safetensors;
import example.gradserve.Tensor;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Map;

/**
 * The program that runs conformance cases with this client. It reads one case per line and writes one result per line,
 * as described in clients/conformance/README.md.
 */
public final class Main {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Main() {}

    /**
     * Runs cases until the end of the input.
     *
     * @param arguments none
     * @throws IOException if input or output fails
     */
    public static void main(String[] arguments) throws IOException {
        PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode stated = JSON.readTree(line);
            output.println(answered(stated).put("id", stated.get("id").textValue()));
            output.flush();
        }
    }

    private static ObjectNode answered(JsonNode stated) {
        ObjectNode result = JSON.createObjectNode();
        try {
            switch (stated.get("kind").textValue()) {
                case "encode" -> encode(stated, result);
                case "decode" -> result.set("tensor", Bits.of(decoded(stated)));
                case "build" -> build(stated, result);
                default -> exchange(stated, result);
            }
        } catch (GradserveException refused) {
            result.set("error", Telling.told(refused));
        }
        return result;
    }

    /** Returns a tensor as the client encodes it. */
    private static void encode(JsonNode stated, ObjectNode result) {
        Tensor tensor = Bits.tensor(stated.get("tensor"));
        String word = stated.get("form").textValue();
        Form form = word.equals("default") ? Form.usualOf(tensor) : Form.valueOf(word.toUpperCase(Locale.ROOT));
        if (form == Form.SAFETENSORS) {
            StringBuilder file = new StringBuilder();
            new Safetensors(Map.of("t", tensor), Map.of()).pieces().forEach(piece -> file.append(Bits.hex(piece)));
            result.put("file", file.toString());
        } else {
            result.put("wire", tensor.toJson(form));
        }
    }

    /** Returns a tensor as the client decodes it. */
    private static Tensor decoded(JsonNode stated) {
        if (stated.has("wire")) {
            return Tensor.fromJson(stated.get("wire").textValue());
        }
        byte[] file = HexFormat.of().parseHex(stated.get("file").textValue());
        return Safetensors.read(ByteBuffer.wrap(file)).tensor("t");
    }

    /** Returns the nodes of a graph, and its functions if there are any. */
    private static void build(JsonNode stated, ObjectNode result) {
        try {
            JsonNode graph = JSON.readTree(Step.graph(stated).toJson());
            result.put("nodes", graph.get("nodes").toString());
            if (graph.has("functions")) {
                result.put("functions", graph.get("functions").toString());
            }
        } catch (IOException unreadable) {
            throw new IllegalStateException(unreadable);
        }
    }

    private static void exchange(JsonNode stated, ObjectNode result) {
        Conversation conversation = new Conversation(stated);
        ArrayNode results = result.putArray("results");
        for (JsonNode call : stated.get("calls")) {
            ObjectNode entry = results.addObject();
            try {
                entry.set("returned", conversation.returned(call));
            } catch (GradserveException failure) {
                entry.set("raised", Telling.told(failure));
            }
        }
        ArrayNode waits = result.putArray("waits");
        conversation.waits().forEach(waits::add);
    }
}
