"""Code that ops of several families share: shape checks, batching, sums, ops without operands."""
