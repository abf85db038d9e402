package example.gradserve;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Reader;
import java.io.StringReader;
import java.lang.reflect.Array;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** JSON trees: reading, with InputExceptions for errors, and conversion of Java values. */
final class Json {
    /** Allows for tensors, which are long strings. */
    private static final JsonFactory FACTORY = JsonFactory.builder()
        .streamReadConstraints(StreamReadConstraints.builder().maxStringLength(Integer.MAX_VALUE).build())
        .build();
    private static final JsonMapper MAPPER =
        JsonMapper.builder(FACTORY).enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS).build();
    private static final ObjectReader READER = MAPPER.reader();
    private static final ObjectReader STRICT = READER.with(StreamReadFeature.STRICT_DUPLICATE_DETECTION);
    private static final ObjectWriter WRITER = MAPPER.writer();

    private Json() {}

    static ObjectNode object() {
        return JsonNodeFactory.instance.objectNode();
    }

    static ArrayNode array() {
        return JsonNodeFactory.instance.arrayNode();
    }

    static ArrayNode array(long... numbers) {
        ArrayNode list = array();
        for (long number : numbers) {
            list.add(number);
        }
        return list;
    }

    /** Parses a JSON object. */
    static ObjectNode object(String text) {
        return object(READER, new StringReader(text));
    }

    /** Parses a JSON object from UTF-8 text. */
    static ObjectNode object(byte[] text) {
        return object(READER, utf8(text));
    }

    /** Parses a JSON object, and rejects a repeated name. */
    static ObjectNode objectOfDistinct(byte[] text) {
        return object(STRICT, utf8(text));
    }

    private static Reader utf8(byte[] text) {
        return new InputStreamReader(new ByteArrayInputStream(text), StandardCharsets.UTF_8.newDecoder());
    }

    private static ObjectNode object(ObjectReader reader, Reader text) {
        if (tree(reader, text) instanceof ObjectNode object) {
            return object;
        }
        throw new InputException("expected a JSON object");
    }

    /** Parses a JSON list. */
    static ArrayNode list(String text) {
        if (tree(READER, new StringReader(text)) instanceof ArrayNode list) {
            return list;
        }
        throw new InputException("expected a JSON list");
    }

    /** Parses JSON. Returns null for an invalid text, because the parser's message would quote the text. */
    private static JsonNode tree(ObjectReader reader, Reader text) {
        try {
            return reader.readTree(text);
        } catch (IOException broken) {
            return null;
        }
    }

    static byte[] bytes(JsonNode value) {
        try {
            return WRITER.writeValueAsBytes(value);
        } catch (JsonProcessingException unwritable) {
            throw new InputException("a string is not valid Unicode");
        }
    }

    /** Returns whether an object has a member that is not null. */
    static boolean has(ObjectNode object, String name) {
        return object.hasNonNull(name);
    }

    static String text(JsonNode object, String name) {
        JsonNode stated = object.path(name);
        if (!stated.isTextual()) {
            throw new InputException("'" + name + "' must be a string");
        }
        return stated.textValue();
    }

    static String textOr(ObjectNode object, String name, String absent) {
        return has(object, name) ? text(object, name) : absent;
    }

    static int whole(JsonNode object, String name) {
        JsonNode stated = object.path(name);
        if (!stated.isInt()) {
            throw new InputException("'" + name + "' must be a 32-bit integer");
        }
        return stated.intValue();
    }

    static long longWhole(JsonNode object, String name) {
        JsonNode stated = object.path(name);
        if (!stated.isIntegralNumber() || !stated.canConvertToLong()) {
            throw new InputException("'" + name + "' must be a 64-bit integer");
        }
        return stated.longValue();
    }

    static boolean truth(JsonNode object, String name) {
        JsonNode stated = object.path(name);
        if (!stated.isBoolean()) {
            throw new InputException("'" + name + "' must be true or false");
        }
        return stated.booleanValue();
    }

    static ObjectNode member(JsonNode object, String name) {
        if (object.path(name) instanceof ObjectNode member) {
            return member;
        }
        throw new InputException("'" + name + "' must be an object");
    }

    static List<ObjectNode> objects(JsonNode object, String name) {
        List<ObjectNode> found = new ArrayList<>();
        for (JsonNode each : list(object, name)) {
            if (!(each instanceof ObjectNode entry)) {
                throw new InputException("'" + name + "' must contain only objects");
            }
            found.add(entry);
        }
        return found;
    }

    static ArrayNode list(JsonNode object, String name) {
        if (object.path(name) instanceof ArrayNode list) {
            return list;
        }
        throw new InputException("'" + name + "' must be a list");
    }

    static long[] wholes(JsonNode object, String name) {
        ArrayNode list = list(object, name);
        long[] found = new long[list.size()];
        for (int i = 0; i < found.length; i++) {
            JsonNode each = list.get(i);
            if (!each.isIntegralNumber() || !each.canConvertToLong()) {
                throw new InputException("'" + name + "' must contain only 64-bit integers");
            }
            found[i] = each.longValue();
        }
        return found;
    }

    /** Reads the ids of nodes, which may be absent. */
    static int[] ids(ObjectNode object, String name) {
        long[] stated = has(object, name) ? wholes(object, name) : new long[0];
        // A number beyond int cannot be a node, nor can -1.
        return Arrays.stream(stated).mapToInt(id -> id == (int) id ? (int) id : -1).toArray();
    }

    /** Converts a Java value to JSON. */
    static JsonNode plain(Object value) {
        if (value == null) {
            return JsonNodeFactory.instance.nullNode();
        } else if (value instanceof JsonNode json) {
            return json;
        } else if (value instanceof Number number) {
            return number(number);
        } else if (value instanceof Boolean truth) {
            return JsonNodeFactory.instance.booleanNode(truth);
        } else if (value instanceof String || value instanceof DType) {
            return JsonNodeFactory.instance.textNode(value.toString());
        } else if (value instanceof Iterable<?> entries) {
            ArrayNode list = array();
            entries.forEach(entry -> list.add(plain(entry)));
            return list;
        } else if (value instanceof Map<?, ?> members) {
            return members(members);
        } else if (value.getClass().isArray()) {
            ArrayNode list = array();
            for (int i = 0; i < Array.getLength(value); i++) {
                list.add(plain(Array.get(value, i)));
            }
            return list;
        }
        throw new InputException("JSON cannot represent a value of type " + value.getClass().getSimpleName());
    }

    private static ObjectNode members(Map<?, ?> members) {
        ObjectNode object = object();
        members.forEach((name, member) -> {
            if (!(name instanceof String text)) {
                throw new InputException("map keys must be strings, not " + name);
            }
            object.set(text, plain(member));
        });
        return object;
    }

    private static JsonNode number(Number number) {
        if (number instanceof Double || number instanceof Float) {
            if (!Double.isFinite(number.doubleValue())) {
                throw new InputException("JSON cannot represent " + number);
            }
            return JsonNodeFactory.instance.numberNode(number.doubleValue());
        } else if (number instanceof BigInteger large) {
            return JsonNodeFactory.instance.numberNode(large);
        } else if (number instanceof Long || number instanceof Integer || number instanceof Short
            || number instanceof Byte) {
            return JsonNodeFactory.instance.numberNode(number.longValue());
        }
        throw new InputException("unsupported number type " + number.getClass().getSimpleName());
    }
}
