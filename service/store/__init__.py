"""State that outlives requests: graphs, tensors, models, and answers to calls with an Idempotency-Key."""
