"""Recipes of ops: which microkernels make a node, for its shapes, dtypes and strides.

What may live here: the choice between a kernel of `engine.microkernels` and what the op does by itself. What may not:
how either computes, or the planning of memory.

Files:
    by_class      Tables by class of ops: what stands there for the nearest class that an op is of
    convolutions  Recipes of convolutions, whichever of the three tensors is the result
    copies        The recipe of copies of what runs backwards
    geometry      Geometries of nodes: what an op's node is, as all kernels that are made for its shapes are told of it
    indexing      Recipes of reading and adding at indices
    pools         Recipes of pools: windows side by side, where these are small
    products      Matrix products as geometry, and the recipe of those that BLAS is not quicker at
    recipe_table  The table of recipes: by device and geometry or op, what is asked for a node's kernels
    sums          The recipe of sums over the axes before and behind others
    ufuncs        Recipes of ops that no loop is written for: their ufuncs, called by machine code, and casts
"""
