"""Microkernels: convolutions, matrix products, pools and other kernels, generated for the shapes of one node.

    geometry → register tiles and the code that feeds them → LLVM IR → recipe

This package decides how such a kernel is blocked, and writes it. It knows no ops, graphs or plans.
`engine.codegen.native` compiles, caches and calls kernels.
"""
