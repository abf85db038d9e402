package example.gradserve.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import example.gradserve.DType;
import example.gradserve.Tensor;
import java.nio.ByteBuffer;
import java.util.HexFormat;

/** Tensors as their bits. */
final class Bits {
    private Bits() {}

    static Tensor tensor(JsonNode bits) {
        byte[] raw = HexFormat.of().parseHex(bits.get("hex").textValue());
        return Tensor.wrap(DType.of(bits.get("dtype").textValue()), ByteBuffer.wrap(raw), shape(bits.get("shape")));
    }

    static long[] shape(JsonNode extents) {
        long[] shape = new long[extents.size()];
        for (int axis = 0; axis < shape.length; axis++) {
            shape[axis] = extents.get(axis).longValue();
        }
        return shape;
    }

    static ObjectNode of(Tensor tensor) {
        ObjectNode bits = JsonNodeFactory.instance.objectNode().put("dtype", tensor.dtype().word());
        putShape(bits, tensor.shape());
        return bits.put("hex", hex(tensor.bytes()));
    }

    static void putShape(ObjectNode into, long[] shape) {
        for (long extent : shape) {
            into.withArray("shape").add(extent);
        }
        into.withArray("shape");
    }

    static String hex(ByteBuffer bytes) {
        byte[] raw = new byte[bytes.remaining()];
        bytes.get(raw);
        return HexFormat.of().formatHex(raw);
    }
}
