# Public names of the engine. `engine/__init__.py` reads this file and imports each name on first use.
from .analysis.catalogue import describe
from .analysis.certificate import Certificate, certify
from .analysis.cost import Analysis, analyse
from .analysis.diagnose import NonfiniteWatch
from .analysis.export import Exported, export_gradients
from .autodiff.calls import (
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
from .compiler.compiler import Compiled, Compiler, CompileRequest, warm
from .compiler.example_blocks import Blocks, CompiledSum, compile_sum
from .compiler.plan import Plan
from .ir.errors import DeadlineExceeded, EngineError, Faults, OverBudget, printable
from .ir.graph import Builder, Graph, Node, Value
from .ir.op import Op, Registry
from .ir.opset import LATEST, OPSET
from .ir.program import Function, Program, Statement, graph_id
from .ir.run_context import NO_DEADLINE, NO_END, Deadline, Limits
from .ir.tensor_type import DTYPES, HostArray, TensorType
from .ops import registry
from .runtime.opening import open_executor

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
