"""Analysis of programs: cost, certificates, sources of NaN, and export of gradients as programs.

Analyses use the whole engine; the engine never depends on them.
"""
