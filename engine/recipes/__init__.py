"""Recipes of ops: which microkernels make a node, for its shapes, dtypes and strides.

What may live here: the choice between a kernel of `engine.microkernels` and what the op does by itself. What may not:
how either computes, or the planning of memory.
"""
