package example.gradserve;

import java.time.Duration;
import java.util.Optional;

/**
 * What every call takes. What is not stated is not sent.
 *
 * @param <S> the options of the call
 */
public abstract sealed class CallOptions<S extends CallOptions<S>>
    permits RunOptions, CheckOptions, PlanOptions, DifferentiateOptions {
    final Asked asked = new Asked();

    CallOptions() {}

    abstract S self();

    /**
     * How tensors travel, both ways.
     *
     * @param form else as their size suggests
     * @return these options
     */
    public S form(Form form) {
        asked.form = Optional.of(form);
        return self();
    }

    /**
     * How long the call may take, over all of its tries.
     *
     * @param limit else that of the client; {@link Duration#ZERO} is without end
     * @return these options
     */
    public S timeout(Duration limit) {
        asked.timeout = Optional.of(limit);
        return self();
    }

    /**
     * Whether a call that keeps something gets an Idempotency-Key, without which it is not repeated.
     *
     * @param makesKeys else as the client has it
     * @return these options
     */
    public S idempotency(boolean makesKeys) {
        asked.idempotency = Optional.of(makesKeys);
        return self();
    }

    /**
     * A field of the request that is newer than this client.
     *
     * @param name on the wire
     * @param value as JSON has it: a number, boolean, string, list, array or map
     * @return these options
     */
    public S field(String name, Object value) {
        asked.values.put(name, value);
        return self();
    }
}
