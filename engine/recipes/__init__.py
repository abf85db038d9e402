"""Recipes of ops: which microkernels make a node, for its shapes, dtypes and strides.

What may live here: the choice between a kernel of `engine.microkernels` and what the op does by itself. What may not:
how either computes, or the planning of memory.

Files:
    convolutions  Recipes of convolution and of its adjoint: as products of the kernel and columns
    copies        The recipe of copies of what runs backwards
    indexing      Recipes of reading and adding at indices
    pools         Recipes of pools: windows side by side, where these are small
    products      The recipe of matrix products that BLAS is not quicker at
    recipe_table  The table of recipes: by device and op, what is asked for a node's kernels
    sums          The recipe of sums over the axes before and behind others
    ufuncs        Recipes of ops that no loop is written for: their ufuncs, called by machine code, and casts
"""
