"""Coefficients that `scripts.coefficients` and `scripts.bessel_coefficients` find and write."""
