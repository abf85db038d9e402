"""State that a server keeps between requests: graphs, tensors, models, and answers to calls with an Idempotency-Key."""
