"""Analysis of programs: cost, certificates, sources of NaN, and the gradient as a program.

Analyses use the engine as a whole. Nothing that the engine needs to run belongs here.
"""
