"""The engine: graphs in, gradients out. A library of its own, on NumPy and, where there is a GPU, CuPy.

    Program (what a client wrote) → Graph (typed) → transforms → passes → Plan → Executor → arrays

One idea carries it: a gradient is again a graph. Rules emit nodes and compute nothing, so that higher order, forward
mode, batching, cost and memory analysis are the same few interpreters over the same few rules.

What may live here: graphs, their derivatives, their execution. What may not: anything of HTTP, JSON, pydantic, files
(but for the folder that compiled kernels are kept in), or of the packages `schemas` and `service`.

Files:
    bodies/        Bodies: functions that ops run, how these are differentiated and batched, and how loops go back over
                   their steps
    calls/         Calls: the questions that can be asked of a program. Each is one class: the nodes it needs, the
                   results it writes
    cards/         What a card runs for a node that is no loop: kernels of ours, products by cuBLASLt, convolutions by
                   cuDNN
    executors/     Executors, which run a plan: NumPy on the CPU, CuPy on a GPU. One loop, two array modules
    functions/     Functions of the mathematical library, written out in the primitives of the loop language
    graph/         Graphs: what they are made of, what they say as text, and when they are well-formed
    loops/         The loop language: scalar programs swept over rows of columns, and the printers that make kernels of
                   them
    microkernels/  Kernels that add up products: convolutions, matrix products and pools, written for the shapes of one
                   node
    native/        Machine code: what compiles it, keeps it, loads it, binds it to memory, and runs it on threads
    oplib/         Parts that definitions of ops share: bases of families, batching, windows, kernels that NumPy does
                   not have, errors
    ops/           The opset: one class an op, in families. Adding an op is adding a class (or a file) here and nothing
                   else
    passes/        Graph → graph, same results: what is not needed goes, what is said twice is said once, what is known
                   is computed
    planning/      From a call of a program to a plan, which knows where every result will lie, and plans kept for the
                   next time
    recipes/       Recipes of ops: which microkernels make a node, for its shapes, dtypes and strides
    rewrites/      Rules of simplification, for ops to declare: each says when a node comes down to less, and to what
    shares/        Shares of those who do not know each other: whose account work goes on, whose turn it is, who gives
                   way
    tools/         Questions about a graph beside its results: cost, certificates, sources of NaN, its gradient as a
                   graph
    transforms/    Graph → graph: differentiation and batching. Each is one short interpreter over nodes; the rules are
                   the ops'
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
