package example.gradserve;

import java.util.LinkedHashMap;
import java.util.Map;

/** The attributes of an op. Null values are not sent. */
final class Attrs {
    final Map<String, Object> stated = new LinkedHashMap<>();

    Attrs with(String name, Object value) {
        stated.put(name, value);
        return this;
    }
}
