"""float16 in the course of a computation: in float32, and rounded once at its end.

float16 ends at 65,504 and has eleven bits. A rule that doubles, squares or adds up leaves its range where the
gradient itself does not, and 1 − y is 0 where y has been rounded to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.graph.ir import Value
from engine.graph.op import Op
from engine.graph.tensor_type import FLOAT16, FLOAT32


def wide(x: Value) -> Value:
    """x, in float32 where it is float16."""
    return x.cast(dtype=FLOAT32) if x.dtype == FLOAT16 else x


def widened(op: Op, y: Value, xs: Sequence[Value], attrs: Mapping[str, Any]) -> list[Value]:
    """y = op(xs), and xs, for a rule to compute with; a float16 y is found once more, without its rounding."""
    operands = [wide(x) for x in xs]
    return [y.builder.emit(op, operands, attrs) if y.dtype == FLOAT16 else y, *operands]
