"""The engine: graphs in, gradients out. A library of its own, on NumPy and, where there is a GPU, CuPy.

    Program (what a client wrote) → Graph (typed) → transforms → passes → Plan → Executor → arrays

One idea carries it: a gradient is again a graph. Rules emit nodes and compute nothing, so that higher order, forward
mode, batching, cost and memory analysis are the same few interpreters over the same few rules.

What may live here: graphs, their derivatives, their execution. What may not: anything of HTTP, JSON, pydantic, files,
or of the packages `schemas` and `service`.
"""

from __future__ import annotations

from engine.compile import Compiled, Compiler
from engine.errors import DeadlineExceeded, EngineError, OverBudget
from engine.executors import open_executor
from engine.ir import COTANGENT, Builder, Graph, Node, Value
from engine.limits import NO_DEADLINE, Deadline, Limits
from engine.plan import Plan
from engine.program import Program, Statement
from engine.registry import Registry, describe, registry
from engine.tensor_type import DTYPES, TensorType

__all__ = [
    "COTANGENT",
    "DTYPES",
    "NO_DEADLINE",
    "Builder",
    "Compiled",
    "Compiler",
    "Deadline",
    "DeadlineExceeded",
    "EngineError",
    "Graph",
    "Limits",
    "Node",
    "OverBudget",
    "Plan",
    "Program",
    "Registry",
    "Statement",
    "TensorType",
    "Value",
    "describe",
    "open_executor",
    "registry",
]
