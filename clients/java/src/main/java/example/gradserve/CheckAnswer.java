package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** How far gradients are from central differences. */
public final class CheckAnswer extends Answer {
    private final boolean passed;
    private final Results<Double> errors;
    private final Results<String> uncertified;

    CheckAnswer(AnswerReader reader) {
        super(reader);
        passed = Json.truth(reader.fields, "passed");
        errors = reader.results("errors", CheckAnswer::relativeError);
        uncertified = reader.results("uncertified", entry -> Json.text(entry, "reason"));
    }

    private static double relativeError(ObjectNode entry) {
        if (!entry.path("relative_error").isNumber()) {
            throw new InputException("'relative_error' is no number");
        }
        return entry.get("relative_error").doubleValue();
    }

    /**
     * Whether every node was compared, and is within the tolerance.
     *
     * @return true where the gradients are right
     */
    public boolean passed() {
        return passed;
    }

    /**
     * How far apart they are, relative to the gradient.
     *
     * @return by the nodes that were compared
     */
    public Results<Double> errors() {
        return errors;
    }

    /**
     * Why the others were not.
     *
     * @return by the nodes that were not compared, a word; the list of words is open
     */
    public Results<String> uncertified() {
        return uncertified;
    }
}
