package example.gradserve;

import com.fasterxml.jackson.databind.node.ObjectNode;

/** The result of a gradient check: how far gradients are from central differences. */
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
            throw new InputException("'relative_error' must be a number");
        }
        return entry.get("relative_error").doubleValue();
    }

    /**
     * Returns whether every node was compared and is within the tolerance.
     *
     * @return true if the gradients are right
     */
    public boolean passed() {
        return passed;
    }

    /**
     * Returns the errors, relative to the gradient.
     *
     * @return the errors by node, of the nodes that were compared
     */
    public Results<Double> errors() {
        return errors;
    }

    /**
     * Returns why the other nodes were not compared.
     *
     * @return a reason for each node that was not compared; new reasons may be added
     */
    public Results<String> uncertified() {
        return uncertified;
    }
}
