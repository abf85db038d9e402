package example.gradserve;

/** The dry run of a call: its estimates are in its fields. */
public final class PlanAnswer extends Answer {
    private final boolean admitted;

    PlanAnswer(AnswerReader reader) {
        super(reader);
        admitted = Json.truth(reader.fields, "admitted");
    }

    /**
     * Returns whether the call is within the limits of the server.
     *
     * @return true if it is
     */
    public boolean admitted() {
        return admitted;
    }
}
