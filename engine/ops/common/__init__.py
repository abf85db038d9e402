"""Parts that ops of several families share: shapes of operands, batching, sums, sources."""
