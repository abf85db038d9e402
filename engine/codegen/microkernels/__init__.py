"""Kernels that add up products: convolutions, matrix products and pools, written for the shapes of one node.

    geometry → a register tile and what feeds it → LLVM IR → recipe

What may live here: how such a kernel is laid out, blocked and written. What may not: ops, graphs, plans; and what
compiles, keeps and calls kernels, which is `engine.codegen.kernels`'.
"""
