package example.gradserve;

/** What {@code jvp} takes beside what is required. */
public final class JvpOptions extends RunOptions<JvpOptions> {
    JvpOptions() {}

    @Override
    JvpOptions self() {
        return this;
    }
}
