package example.gradserve;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** The common members of all results. */
public abstract sealed class Answer permits ForwardAnswer, CheckAnswer, PlanAnswer, DifferentiateAnswer {
    private final ObjectNode fields;

    Answer(AnswerReader reader) {
        fields = reader.fields;
    }

    /**
     * Returns the members of the response, except tensors and graphs.
     *
     * @return an object with API names
     */
    public ObjectNode fields() {
        return fields;
    }

    /**
     * Returns the run statistics: time, memory and hardware.
     *
     * @return an object, or a missing node if the response has none
     */
    public JsonNode stats() {
        return fields.path("stats");
    }
}
