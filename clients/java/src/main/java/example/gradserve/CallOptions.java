package example.gradserve;

import java.time.Duration;
import java.util.Optional;

/**
 * Options of every call. Options that you do not set are not sent.
 *
 * @param <S> the options of the call
 */
public abstract sealed class CallOptions<S extends CallOptions<S>>
    permits RunOptions, CheckOptions, PlanOptions, DifferentiateOptions {
    final Asked asked = new Asked();

    CallOptions() {}

    abstract S self();

    /**
     * Sets the encoding of tensors in the request and the response.
     *
     * @param form the form; by default it depends on the size of the tensors
     * @return these options
     */
    public S form(Form form) {
        asked.form = Optional.of(form);
        return self();
    }

    /**
     * Sets the time limit for all attempts of the call together.
     *
     * @param limit the limit; by default the client's; {@link Duration#ZERO} means no limit
     * @return these options
     */
    public S timeout(Duration limit) {
        asked.timeout = Optional.of(limit);
        return self();
    }

    /**
     * Sets whether a call that stores something sends an Idempotency-Key. Without one it is not retried.
     *
     * @param makesKeys whether to send a key; by default the client's setting
     * @return these options
     */
    public S idempotency(boolean makesKeys) {
        asked.idempotency = Optional.of(makesKeys);
        return self();
    }

    /**
     * Adds a field of the request that is newer than this client.
     *
     * @param name the API name
     * @param value the value as JSON: a number, boolean, string, list, array or map
     * @return these options
     */
    public S field(String name, Object value) {
        asked.values.put(name, value);
        return self();
    }
}
