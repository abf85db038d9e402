"""The engine: graphs in, gradients out. A library of its own, on NumPy and, if there is a GPU, CuPy.

    Program (as written by a client) → Graph (typed) → transforms → passes → Plan → Executor → arrays

A gradient is again a graph. Rules emit nodes and compute nothing, so higher-order gradients, forward mode, batching,
cost and memory analysis are the same few interpreters over the same rules.

This package holds graphs, their derivatives and their execution. It knows nothing of HTTP, JSON, pydantic or the
packages `schemas` and `service`, and uses no files but the cache of compiled kernels.
"""

from __future__ import annotations

import lazy_loader

# Names are imported on first use, so that a process that needs one leaf module, such as `printable`, loads no ops.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
