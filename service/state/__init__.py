"""What a server keeps for its callers between requests: graphs, tensors, and answers that may be asked for again."""
