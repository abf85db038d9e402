package example.gradserve;

/** Options of {@code forward}. */
public final class ForwardOptions extends RunOptions<ForwardOptions> {
    ForwardOptions() {}

    @Override
    ForwardOptions self() {
        return this;
    }
}
