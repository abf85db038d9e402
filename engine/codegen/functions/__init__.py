"""Functions of the mathematical library, written out in the primitives of fused kernels.

    generated coefficients → elementary → one family a file → expansions

What may live here: expansions, with the source and the error of each. What may not: functions of whole arrays, which
are the NumPy printer's.
"""
