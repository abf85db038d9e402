"""The engine's side of a workload: operators and functions that write statements of a graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from engine import Statement, registry

Number = int | float


class Recorder:
    """`ops` for the engine: each function appends a node, and takes the op's operands and attributes."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []

    def __getattr__(self, name: str) -> Callable[..., Recorded]:
        return partial(self.append, name)

    def append(self, name: str, *operands: Recorded, **attrs: Any) -> Recorded:
        """One node more."""
        self.statements.append(Statement(registry().ops[name], tuple(x.node for x in operands), attrs))
        return Recorded(self, len(self.statements) - 1)


class Recorded:
    """A node, with Python's operators."""

    def __init__(self, ops: Recorder, node: int) -> None:
        self.ops, self.node = ops, node

    def _with(self, op: str, other: Recorded | Number) -> Recorded:
        if isinstance(other, Recorded):
            return self.ops.append(op, self, other)
        return self.ops.append(f"{op}_scalar", self, scalar=float(other))

    def __add__(self, other: Recorded | Number) -> Recorded:
        return self._with("add", other)

    def __sub__(self, other: Recorded | Number) -> Recorded:
        return self._with("sub", other)

    def __mul__(self, other: Recorded | Number) -> Recorded:
        return self._with("mul", other)

    def __truediv__(self, other: Recorded | Number) -> Recorded:
        return self._with("div", other)

    def __radd__(self, other: Number) -> Recorded:
        return self._with("add", other)

    def __rmul__(self, other: Number) -> Recorded:
        return self._with("mul", other)

    def __rsub__(self, other: Number) -> Recorded:
        return -self + other

    def __neg__(self) -> Recorded:
        return self.ops.neg(self)

    def __matmul__(self, other: Recorded) -> Recorded:
        return self.ops.matmul(self, other)
