# Public names of the engine. `engine/__init__.py` reads this file and imports each name on first use.
from .calls import (
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
from .executors.opening import open_executor
from .graph.dtypes import DTYPES
from .graph.errors import DeadlineExceeded, EngineError, OverBudget, printable
from .graph.faults import Faults
from .graph.identity import graph_id
from .graph.ir import Builder, Graph, Node, Value
from .graph.limits import NO_DEADLINE, NO_END, Deadline, Limits
from .graph.op import Op
from .graph.opset import LATEST, OPSET
from .graph.program import Function, Program
from .graph.registry import Registry
from .graph.statement import Statement
from .graph.tensor_type import HostArray, TensorType
from .ops import registry
from .planning.blocks import Blocks, CompiledSum, compile_sum
from .planning.compiler import Compiled, Compiler, CompileRequest
from .planning.plan import Plan
from .planning.warm import warm
from .tools.analysis import Analysis, analyse
from .tools.catalogue import describe
from .tools.check import Certificate, certify
from .tools.diagnose import NonfiniteWatch
from .tools.export import Exported, export_gradients

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
    "CompileRequest",
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
