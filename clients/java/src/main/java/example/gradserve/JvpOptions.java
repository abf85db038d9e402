package example.gradserve;

/** Options of {@code jvp}. */
public final class JvpOptions extends RunOptions<JvpOptions> {
    JvpOptions() {}

    @Override
    JvpOptions self() {
        return this;
    }
}
