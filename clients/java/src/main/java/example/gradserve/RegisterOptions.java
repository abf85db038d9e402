package example.gradserve;

import java.util.Optional;

/** Options of {@code register}. */
public final class RegisterOptions {
    RegisterOptions() {}

    String description = "";
    Optional<Form> form = Optional.empty();

    /**
     * Sets the description of the graph.
     *
     * @param text a text for people
     * @return these options
     */
    public RegisterOptions description(String text) {
        description = text;
        return this;
    }

    /**
     * Sets the encoding of constants.
     *
     * @param stated the form; by default it depends on their size
     * @return these options
     */
    public RegisterOptions form(Form stated) {
        form = Optional.of(stated);
        return this;
    }
}
