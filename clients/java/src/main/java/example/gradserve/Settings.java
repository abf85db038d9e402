package example.gradserve;

import java.time.Duration;

/** What a client was made with. */
record Settings(Transport transport, Duration timeout, int retries, boolean idempotency, Surroundings surroundings) {}
