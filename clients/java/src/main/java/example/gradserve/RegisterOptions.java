package example.gradserve;

import java.util.Optional;

/** What {@code register} takes beside a graph. */
public final class RegisterOptions {
    RegisterOptions() {}

    String description = "";
    Optional<Form> form = Optional.empty();

    /**
     * What the graph is.
     *
     * @param text for people
     * @return these options
     */
    public RegisterOptions description(String text) {
        description = text;
        return this;
    }

    /**
     * How constants travel.
     *
     * @param stated else as their size suggests
     * @return these options
     */
    public RegisterOptions form(Form stated) {
        form = Optional.of(stated);
        return this;
    }
}
