"""Kernels, from a scalar program to machine code: what is computed of arrays, without ops, graphs or plans."""
