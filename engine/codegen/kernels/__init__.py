"""Fused kernels: a language of scalar programs over rows and columns, and the printers that compile them.

    program → schedule → printers → kernels

This package contains the language, its printers, and the code that binds printed kernels. It knows no ops, graphs or
plans. `engine.codegen.native` runs machine code, and `engine.codegen.functions` expands mathematical functions.
"""
