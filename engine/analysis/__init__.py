"""Analysis of programs beside running them: cost, certificates, sources of NaN, and the gradient as a program.

What may live here: uses of the engine as a whole. What may not: anything that the engine needs to run.
"""
