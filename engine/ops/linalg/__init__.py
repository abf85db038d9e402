"""Linear algebra: products, decompositions, linear systems and functions of matrices."""
