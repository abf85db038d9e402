package example.gradserve.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Values of attributes as Java values. */
final class Values {
    private Values() {}

    static Object of(JsonNode stated) {
        if (stated.isObject()) {
            return ofObject(stated);
        } else if (stated.isArray()) {
            List<Object> list = new ArrayList<>();
            stated.forEach(each -> list.add(of(each)));
            return list;
        } else if (stated.isNumber()) {
            return stated.numberValue();
        } else if (stated.isBoolean()) {
            return stated.booleanValue();
        }
        return stated.textValue();
    }

    /** A number that JSON cannot represent, a tensor, or an object. */
    private static Object ofObject(JsonNode stated) {
        if (stated.has("int")) {
            return new BigInteger(stated.get("int").textValue());
        } else if (stated.has("float")) {
            return Double.valueOf(
                stated.get("float").textValue().replace("nan", "NaN").replace("inf", "Infinity"));
        } else if (stated.has("hex")) {
            return Bits.tensor(stated);
        }
        Map<String, Object> members = new LinkedHashMap<>();
        stated.properties().forEach(each -> members.put(each.getKey(), of(each.getValue())));
        return members;
    }
}
