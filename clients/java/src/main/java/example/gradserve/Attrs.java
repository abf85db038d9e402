package example.gradserve;

import java.util.LinkedHashMap;
import java.util.Map;

/** What a method of an op states beside operands. What is null is not stated. */
final class Attrs {
    final Map<String, Object> stated = new LinkedHashMap<>();

    Attrs with(String name, Object value) {
        stated.put(name, value);
        return this;
    }
}
