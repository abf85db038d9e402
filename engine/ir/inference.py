"""Inference: an op's canonical attributes on operands of given types, the types of its results, and its cost.

Graphs repeat the same few nodes, within a graph and from one graph to the next. So results of rules are cached for the
whole process, under the op, the operands' types and the attributes: an attribute's key tells types and bits apart (1,
1.0 and True differ), and attributes that are large are not cached. Nodes that repeat one another share what is cached.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import numpy as np

from engine.ir.attributes import complete, keyed
from engine.ir.errors import EngineError
from engine.ir.kinds import is_remembered
from engine.ir.kinds.kind import LONGEST_REMEMBERED
from engine.ir.op import Definition, Emitted, Kernel
from engine.ir.tensor_type import INT8, INT16, INT32, UINT8, TensorType

_Made = TypeVar("_Made")

#: entries of one cache, unless it says otherwise: four thousand take about 4 MB
MOST_CACHED: Final = 4096
#: real operations for one of complex numbers: of a product and a sum, which LAPACK counts as 6 and 2 for 1 and 1
_COMPLEX_FLOPS: Final = 4


class Stated(dict[str, Any]):
    """Attributes that are never changed, with their cache key: `key`, None if they are not cached."""

    __slots__ = ("key",)

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        super().__init__(attrs)
        self.key = _key(attrs)


def attributes_key(attrs: Mapping[str, Any]) -> Hashable:
    """Return a key that tells attributes apart: known already, unless they are large."""
    known = attrs.key if isinstance(attrs, Stated) else None
    return keyed(attrs) if known is None else known


def is_small(attrs: Mapping[str, Any]) -> bool:
    """Whether attributes are known to be of the kinds that are remembered: a few numbers and names, and no tensors."""
    return not attrs or (isinstance(attrs, Stated) and attrs.key is not None)


class RuleCache(Generic[_Made]):
    """Cache of `make(op, types, attrs)`, by op, types and attributes.

    Threads may share it: two that miss at once call `make` twice, to the same result. Errors are not cached.
    """

    def __init__(
        self, make: Callable[[Definition, tuple[Any, ...], Mapping[str, Any]], _Made], most: int | None = None
    ) -> None:
        """Keep at most `most` entries; None: MOST_CACHED."""
        self._make = make
        self._most = most
        self.known: dict[Hashable, _Made] = {}

    def __len__(self) -> int:
        return len(self.known)

    def __call__(self, op: Definition, types: tuple[Any, ...], attrs: Mapping[str, Any]) -> _Made:
        """Return the cached result, or that of `make`. Raises what `make` raises."""
        said = attrs.key if isinstance(attrs, Stated) else _key(attrs) if attrs else ()
        if said is None or op.several or len(types) > LONGEST_REMEMBERED or tuple in map(type, types):
            return self._make(op, types, attrs)
        number = op, types, said
        known = self.known.get(number)
        if known is None:
            known = self._make(op, types, attrs)
            if len(self.known) >= (self._most or MOST_CACHED):
                self.known.clear()  # what is in use is soon there again, at what it costs without
            self.known[number] = known
        return known


def _key(attrs: Mapping[str, Any]) -> tuple[Hashable, ...] | None:
    """Return a key that tells attributes apart; None if they are large, or of a kind that is not cached."""
    if not all(map(is_remembered, attrs.values())):
        return None
    return keyed(attrs)


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
inferred: Final = RuleCache(_infer)
#: for a result and operands of these types, the result's first
work: Final = RuleCache(_work)


# Graphs of opset 1 have no int16: there, int8 with uint8 is int32.


def without_int16(op: Definition, operands: Sequence[Emitted], attrs: Mapping[str, Any]) -> list[Emitted]:
    """The operands for an op of opset 1: int8 beside uint8 as int32, where the op brings them to a common dtype.

    It does where its results are of the same dtypes if both are int16.
    """
    if not {INT8, UINT8} <= {x.dtype for x in operands}:
        return list(operands)
    wide = [x.type.with_dtype(INT16) if x.dtype in (INT8, UINT8) else x.type for x in operands]
    try:
        brought_together = _dtypes(op, wide, attrs) == _dtypes(op, [x.type for x in operands], attrs)
    except EngineError:  # which is told of the operands as they are
        return list(operands)
    if not brought_together:
        return list(operands)
    return [x.cast(dtype=INT32) if x.dtype in (INT8, UINT8) else x for x in operands]


def _dtypes(op: Definition, types: Sequence[TensorType], attrs: Mapping[str, Any]) -> list[np.dtype[Any]]:
    return [type.dtype for type in inferred(op, tuple(types), attrs).types]
