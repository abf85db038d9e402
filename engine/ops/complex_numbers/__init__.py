"""Complex numbers: their parts, and discrete Fourier transforms."""
