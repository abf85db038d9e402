package example.gradserve;

/** What {@code forward} takes beside what is required. */
public final class ForwardOptions extends RunOptions<ForwardOptions> {
    ForwardOptions() {}

    @Override
    ForwardOptions self() {
        return this;
    }
}
