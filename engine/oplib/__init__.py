"""What definitions of ops share: bases of families, batching, windows, kernels that NumPy does not have, errors.

What may live here: what at least two files of `engine.ops` use. What may not: an op with a name, or an import from
`engine.ops`.
"""
