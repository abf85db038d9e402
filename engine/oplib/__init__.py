"""Parts that definitions of ops share: bases of families, batching, windows, kernels that NumPy does not have, errors.

What may live here: what several definitions use, and kernels that are more than a method of an op. What may not: an op
with a name, or an import from `engine.ops`.
"""
