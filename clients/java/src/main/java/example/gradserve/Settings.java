package example.gradserve;

import java.time.Duration;

/** The settings of a client. */
record Settings(Transport transport, Duration timeout, int retries, boolean idempotency, Surroundings surroundings) {}
