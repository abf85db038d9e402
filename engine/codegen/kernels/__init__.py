"""The language of fused kernels: scalar programs swept over rows of columns, and the printers that compile them.

    program → schedule → printers → kernels

What may live here: the language, its printers, and what binds what they print. What may not: ops,
graphs, plans; what runs machine code, which is `engine.codegen.native`'s; and how functions are expanded, which
is `engine.codegen.functions`'.
"""
