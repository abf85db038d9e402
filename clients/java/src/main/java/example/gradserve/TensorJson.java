package example.gradserve;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Optional;

/** Tensors in JSON: numbers, or base64 of their bytes. */
final class TensorJson {
    /** The largest integer that every JSON parser reads exactly. */
    private static final long EXACT = 1L << 53;

    private TensorJson() {}

    /** Returns the tensor in JSON: numbers if the form is JSON and JSON can represent all of them, otherwise base64. */
    static ObjectNode encoded(Tensor tensor, Form form) {
        ObjectNode object = Json.object().put("dtype", tensor.dtype().word());
        object.set("shape", Json.array(tensor.shape()));
        Optional<ArrayNode> numbers = form == Form.JSON ? numbers(tensor) : Optional.empty();
        numbers.ifPresentOrElse(
            list -> object.set("data", list), () -> object.put("data_b64", base64(tensor.bytes())));
        return object;
    }

    private static String base64(ByteBuffer bytes) {
        return StandardCharsets.ISO_8859_1.decode(Base64.getEncoder().encode(bytes)).toString();
    }

    /**
     * Returns the elements, in which a complex number is its real part followed by its imaginary part. Empty if JSON
     * cannot represent an element: NaN, infinities, integers beyond 2⁵³.
     */
    private static Optional<ArrayNode> numbers(Tensor tensor) {
        ArrayNode list = Json.array();
        ByteBuffer bytes = tensor.bytes();
        for (int place = 0; place < tensor.numberCount(); place++) {
            if (tensor.hasFloats()) {
                double number = tensor.floatAt(bytes, place);
                if (!Double.isFinite(number)) {
                    return Optional.empty();
                }
                list.add(number);
            } else {
                long number = tensor.wholeAt(bytes, place);
                if (number < -EXACT || number > EXACT) {
                    return Optional.empty();
                }
                list.add(number);
            }
        }
        return Optional.of(list);
    }

    static Tensor decoded(ObjectNode object) {
        DType dtype = DType.of(Json.text(object, "dtype"));
        return Tensor.wrap(dtype, payload(object, dtype.parts()), Json.wholes(object, "shape"));
    }

    private static ByteBuffer payload(ObjectNode object, DType dtype) {
        ArrayNode numbers = Json.has(object, "data") ? Json.list(object, "data") : Json.array();
        byte[] raw = base64Of(Json.textOr(object, "data_b64", ""));
        if (numbers.isEmpty()) {
            return ByteBuffer.wrap(raw);
        }
        if (raw.length > 0) {
            throw new InputException("the tensor has both data and data_b64");
        }
        ByteBuffer elements = ByteBuffer.allocate(numbers.size() * dtype.size()).order(ByteOrder.LITTLE_ENDIAN);
        for (JsonNode number : numbers) {
            if (!number.isNumber()) {
                throw new InputException("data must contain only numbers");
            }
            if (dtype.kind == DType.Kind.FLOAT) {
                putFloat(elements, dtype, number);
            } else {
                putWhole(elements, dtype, number);
            }
        }
        return elements.flip();
    }

    private static byte[] base64Of(String text) {
        try {
            byte[] raw = Base64.getDecoder().decode(text);
            if (text.length() % 4 == 0) {
                return raw;
            }
        } catch (IllegalArgumentException broken) {
            // Reported below.
        }
        throw new InputException("data_b64 is not valid base64");
    }

    /** Rounds to the nearest number of the dtype. */
    private static void putFloat(ByteBuffer elements, DType dtype, JsonNode stated) {
        double number = stated.doubleValue();
        switch (dtype) {
            case FLOAT16 -> {
                short bits = Float16.fromDouble(number);
                elements.putShort(bits);
                number = Float16.toDouble(bits);
            }
            case FLOAT32 -> {
                elements.putFloat((float) number);
                number = (float) number;
            }
            default -> elements.putDouble(number);
        }
        if (Double.isInfinite(number)) {
            throw new InputException("a number in data is out of range for " + dtype);
        }
    }

    /** Reads an integer, which may be written with a decimal point. */
    private static void putWhole(ByteBuffer elements, DType dtype, JsonNode stated) {
        double rounded = stated.doubleValue();
        boolean isWhole = stated.isIntegralNumber() ? stated.canConvertToLong() : rounded == Math.rint(rounded)
            && -0x1p63 <= rounded && rounded < 0x1p63;
        long number = stated.longValue();
        boolean fits = switch (dtype) {
            case BOOL -> number == 0 || number == 1;
            case INT8 -> number == (byte) number;
            case UINT8 -> number == (number & 0xff);
            case INT16 -> number == (short) number;
            case INT32 -> number == (int) number;
            case UINT32 -> number == (number & 0xffff_ffffL);
            default -> true;
        };
        if (!isWhole || !fits) {
            throw new InputException("a number in data is not a valid " + dtype);
        }
        switch (dtype.size()) {
            case 1 -> elements.put((byte) number);
            case 2 -> elements.putShort((short) number);
            case 4 -> elements.putInt((int) number);
            default -> elements.putLong(number);
        }
    }
}
