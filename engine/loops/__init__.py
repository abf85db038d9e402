"""The loop language: scalar programs swept over rows of columns, and the printers that make kernels of them.

    program → functions → schedule → printers → kernels

What may live here: the language, its expansion into IEEE primitives, its printers, and what compiles, keeps and
calls what they print. What may not: ops, graphs, plans.
"""
