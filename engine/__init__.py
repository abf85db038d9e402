"""The engine: graphs in, gradients out. A library of its own, on NumPy and, where there is a GPU, CuPy.

    Program (what a client wrote) → Graph (typed) → transforms → passes → Plan → Executor → arrays

One idea carries it: a gradient is again a graph. Rules emit nodes and compute nothing, so that higher order, forward
mode, batching, cost and memory analysis are the same few interpreters over the same few rules.

What may live here: graphs, their derivatives, their execution. What may not: anything of HTTP, JSON, pydantic, files
(but for the folder that compiled kernels are kept in), or of the packages `schemas` and `service`.
"""

from __future__ import annotations

from engine.calls import (
    COTANGENTS,
    HVP,
    JVP,
    STORED_VALUES,
    VJP,
    Batch,
    BatchSum,
    Call,
    Gradients,
    Hessian,
    Jacobian,
    Label,
    Values,
    keeping,
)
from engine.executors import open_executor
from engine.graph.dtypes import DTYPES
from engine.graph.errors import DeadlineExceeded, EngineError, OverBudget, printable
from engine.graph.faults import Faults
from engine.graph.identity import graph_id
from engine.graph.ir import Builder, Graph, Node, Value
from engine.graph.limits import NO_DEADLINE, NO_END, Deadline, Limits
from engine.graph.op import Op
from engine.graph.opset import LATEST, OPSET
from engine.graph.program import Function, Program
from engine.graph.registry import Registry
from engine.graph.statement import Statement
from engine.graph.tensor_type import HostArray, TensorType
from engine.ops import registry
from engine.planning.blocks import Blocks, CompiledSum, compile_sum
from engine.planning.compiler import Compiled, Compiler
from engine.planning.plan import Plan
from engine.planning.warm import warm
from engine.tools.analysis import Analysis, analyse
from engine.tools.catalogue import describe
from engine.tools.check import Certificate, certify
from engine.tools.diagnose import NonfiniteWatch
from engine.tools.export import Exported, export_gradients

__all__ = [
    "COTANGENTS",
    "DTYPES",
    "HVP",
    "JVP",
    "LATEST",
    "NO_DEADLINE",
    "NO_END",
    "OPSET",
    "STORED_VALUES",
    "VJP",
    "Analysis",
    "Batch",
    "BatchSum",
    "Blocks",
    "Builder",
    "Call",
    "Certificate",
    "Compiled",
    "CompiledSum",
    "Compiler",
    "Deadline",
    "DeadlineExceeded",
    "EngineError",
    "Exported",
    "Faults",
    "Function",
    "Gradients",
    "Graph",
    "Hessian",
    "HostArray",
    "Jacobian",
    "Label",
    "Limits",
    "Node",
    "NonfiniteWatch",
    "Op",
    "OverBudget",
    "Plan",
    "Program",
    "Registry",
    "Statement",
    "TensorType",
    "Value",
    "Values",
    "analyse",
    "certify",
    "compile_sum",
    "describe",
    "export_gradients",
    "graph_id",
    "keeping",
    "open_executor",
    "printable",
    "registry",
    "warm",
]
