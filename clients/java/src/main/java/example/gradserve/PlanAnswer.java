package example.gradserve;

/** What a call would take, in its fields. */
public final class PlanAnswer extends Answer {
    private final boolean admitted;

    PlanAnswer(AnswerReader reader) {
        super(reader);
        admitted = Json.truth(reader.fields, "admitted");
    }

    /**
     * Whether the call would be within the limits of the server.
     *
     * @return true where it would
     */
    public boolean admitted() {
        return admitted;
    }
}
