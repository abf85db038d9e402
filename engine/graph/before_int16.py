"""Graphs of opset 1 have no int16: there, int8 with uint8 is int32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.graph.errors import EngineError
from engine.graph.inference import inferred
from engine.graph.op import Definition, Emitted
from engine.graph.tensor_type import INT8, INT16, INT32, UINT8, TensorType


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
