"""The engine: graphs in, gradients out. A library of its own, on NumPy and, where there is a GPU, CuPy.

    Program (what a client wrote) → Graph (typed) → transforms → passes → Plan → Executor → arrays

One idea carries it: a gradient is again a graph. Rules emit nodes and compute nothing, so that higher order, forward
mode, batching, cost and memory analysis are the same few interpreters over the same few rules.

What may live here: graphs, their derivatives, their execution. What may not: anything of HTTP, JSON, pydantic, files,
or of the packages `schemas` and `service`.
"""

from __future__ import annotations

from engine.analysis import Analysis, analyse
from engine.calls import COTANGENTS, HVP, JVP, VJP, Batch, Call, Gradients, Hessian, Jacobian, Label, Values
from engine.check import Certificate, certify
from engine.compile import Compiled, Compiler
from engine.diagnose import Watch
from engine.errors import DeadlineExceeded, EngineError, OverBudget
from engine.executors import open_executor
from engine.export import Exported, export_gradients
from engine.identity import graph_id
from engine.ir import Builder, Graph, Node, Value
from engine.limits import NO_DEADLINE, NO_END, Deadline, Limits
from engine.op import Op
from engine.plan import Plan
from engine.program import Program, Statement
from engine.registry import Registry, describe, registry
from engine.tensor_type import DTYPES, TensorType

__all__ = [
    "COTANGENTS",
    "DTYPES",
    "HVP",
    "JVP",
    "NO_DEADLINE",
    "NO_END",
    "VJP",
    "Analysis",
    "Batch",
    "Builder",
    "Call",
    "Certificate",
    "Compiled",
    "Compiler",
    "Deadline",
    "DeadlineExceeded",
    "EngineError",
    "Exported",
    "Gradients",
    "Graph",
    "Hessian",
    "Jacobian",
    "Label",
    "Limits",
    "Node",
    "Op",
    "OverBudget",
    "Plan",
    "Program",
    "Registry",
    "Statement",
    "TensorType",
    "Value",
    "Values",
    "Watch",
    "analyse",
    "certify",
    "describe",
    "export_gradients",
    "graph_id",
    "open_executor",
    "registry",
]
