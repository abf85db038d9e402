"""Mathematical functions, expanded into the primitives of fused kernels.

    generated coefficients → elementary functions → special functions → expansions

Each expansion states its source and its error. Functions of whole arrays are in the NumPy printer
(`engine.codegen.kernels.array_functions`).
"""
