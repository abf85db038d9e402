"""The engine: graphs in, gradients out. A library of its own, on NumPy and, where there is a GPU, CuPy.

    Program (what a client wrote) → Graph (typed) → transforms → passes → Plan → Executor → arrays

One idea carries it: a gradient is again a graph. Rules emit nodes and compute nothing, so that higher order, forward
mode, batching, cost and memory analysis are the same few interpreters over the same few rules.

What may live here: graphs, their derivatives, their execution. What may not: anything of HTTP, JSON, pydantic, files
(but for the folder that compiled kernels are kept in), or of the packages `schemas` and `service`.
"""

from __future__ import annotations

import lazy_loader

# A name is imported on first use, so that a process that needs one leaf, such as `printable`, loads no ops.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
