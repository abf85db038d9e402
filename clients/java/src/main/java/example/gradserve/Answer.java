package example.gradserve;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** What all answers have. */
public abstract sealed class Answer permits ForwardAnswer, CheckAnswer, PlanAnswer, DifferentiateAnswer {
    private final ObjectNode fields;

    Answer(AnswerReader reader) {
        fields = reader.fields;
    }

    /**
     * What came, but for tensors and graphs.
     *
     * @return an object with the names of the wire
     */
    public ObjectNode fields() {
        return fields;
    }

    /**
     * The receipt: what running it took, and on what.
     *
     * @return an object, or a missing node where there is none
     */
    public JsonNode stats() {
        return fields.path("stats");
    }
}
