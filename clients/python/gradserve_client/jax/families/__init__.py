"""Rules for JAX's primitives, a family a file: each puts its own into `table.RULES`.

table             the table that they are put into
refused           primitives that no graph can say, by reason
helpers           what several families write
elementwise       elementwise numbers, comparisons and choices
integers          division, logic of bits and shifts of whole numbers
casts             other dtypes, and what is the same for a graph
reductions        sums and the like over axes, and positions of extremes
along_axes        what accumulates or sorts along an axis
shapes            other shapes, joining, cutting, padding
products          products of tensors
convolution       convolutions of up to three axes
windows           sums and extremes of windows, and the way back from these
positions         where windows of an operand begin, as rows of a table
indexing          reading at positions that tensors hold
scattering        writing at positions that tensors hold
linear_algebra    systems of equations, inverses, determinants and factors
random_bits       random bits on their way to become floats
randomness        keys of threefry, and what is drawn of them
control_flow      loops and branches
calls             what runs a jaxpr: inline, computed again, or with a rule of its own
"""
