"""Inference: an op's canonical attributes on operands of given types, the types of its results, and its cost.

Graphs repeat the same few nodes, within a graph and from one graph to the next. So results of rules are cached for the
whole process, under the op, the operands' types and the attributes: an attribute's key tells types and bits apart (1,
1.0 and True differ), and attributes that are large are not cached. Nodes that repeat one another share what is cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from engine.graph.attributes import complete
from engine.graph.memory import Memory, Stated
from engine.graph.op import Definition, Kernel
from engine.graph.tensor_type import TensorType

#: real operations for one of complex numbers: of a product and a sum, which LAPACK counts as 6 and 2 for 1 and 1
_COMPLEX_FLOPS: Final = 4


class Inferred(NamedTuple):
    """Attributes with nothing left to interpret, and the type of each result."""

    attrs: Mapping[str, Any]
    types: tuple[TensorType, ...]


class Work(NamedTuple):
    """Floating-point operations, and bytes allocated beside the result."""

    flops: int
    workspace: int


def _infer(op: Definition, types: tuple[Any, ...], stated: Mapping[str, Any]) -> Inferred:
    if not op.is_leaf:
        op.check_operands(types)
    full = complete(op.name, op.attrs, stated) if stated or op.attrs else {}
    canonical = op.canonical(full, *types)
    result = op.infer(*types, **canonical)
    results = result if isinstance(result, tuple) else (result,)
    op.check_connection(types, results)
    return Inferred(Stated(canonical), results)


def _work(op: Definition, types: tuple[Any, ...], attrs: Mapping[str, Any]) -> Work:
    kernel = cast("Kernel", op)
    is_complex = any(isinstance(type, TensorType) and type.is_complex for type in types)
    each = _COMPLEX_FLOPS if is_complex else 1
    return Work(each * kernel.flops(*types, **attrs), kernel.workspace(*types, **attrs))


#: for operands of these types, which are checked. Raises EngineError, and TypeError for attributes that are unknown or
#: missing, and for a result in which gradients would end unsaid
inferred: Final = Memory(_infer)
#: for a result and operands of these types, the result's first
work: Final = Memory(_work)
