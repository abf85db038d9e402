"""Code generation: from a scalar program to machine code. Works on arrays, without ops, graphs or plans."""
