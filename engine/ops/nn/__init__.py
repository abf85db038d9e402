"""Neural networks: activations, dense layers, losses, normalization, attention and resizing."""
