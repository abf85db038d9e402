"""What an op makes of operand types and attributes: its canonical attributes and its result's types, remembered.

Rules write the same ops on the same types over and over, in one graph and in the next. What was inferred is shared by
the nodes that say the same, and never changed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from engine.graph.attributes import complete, key
from engine.graph.op import Definition, ResultTypes
from engine.graph.tensor_type import TensorType

#: how much is remembered, all of it for the whole process: four thousand take about 4 MB
MOST_REMEMBERED: Final = 4096
#: operands, entries of a list and characters beyond which a node is not remembered, so that each entry is small
LONGEST_REMEMBERED: Final = 64


class Inferred(NamedTuple):
    """Attributes with nothing left to interpret, and the type of each result."""

    attrs: Mapping[str, Any]
    types: tuple[TensorType, ...]


_remembered: dict[Hashable, Inferred] = {}


def inferred(op: Definition, operands: tuple[ResultTypes, ...], stated: Mapping[str, Any]) -> Inferred:
    """What a node of `op` is. Raises EngineError, and TypeError for attributes that are unknown or missing.

    Threads may share what is remembered: two that ask for the same at once infer it twice, to the same result.
    """
    said = _key(stated) if stated else ()
    if said is None or op.several or len(operands) > LONGEST_REMEMBERED or tuple in map(type, operands):
        return _infer(op, operands, stated)
    number = op, operands, said
    known = _remembered.get(number)
    if known is None:
        known = _infer(op, operands, stated)
        if len(_remembered) >= MOST_REMEMBERED:
            _remembered.clear()  # what is in use is soon there again, at what it costs without
        _remembered[number] = known
    return known


def _infer(op: Definition, operands: Sequence[Any], stated: Mapping[str, Any]) -> Inferred:
    full = complete(op.name, op.attrs, stated) if stated or op.attrs else {}
    canonical = op.canonical(full, *operands)
    found = op.infer(*operands, **canonical)
    return Inferred(canonical, found if isinstance(found, tuple) else (found,))


_NUMBERS = frozenset({bool, int, float, type(None)})  # as such: a float of NumPy's computes otherwise than Python's


def _key(stated: Mapping[str, Any]) -> tuple[Hashable, ...] | None:
    """What tells these attributes from others; None where they are large, or not of the kinds that are remembered."""
    if not all(map(_is_small, stated.values())):
        return None
    return tuple([(name, key(value)) for name, value in stated.items()])


def _is_small(value: Any) -> bool:
    if type(value) in _NUMBERS:
        return True
    if type(value) in (tuple, str):
        return len(value) <= LONGEST_REMEMBERED
    return isinstance(value, np.dtype)
