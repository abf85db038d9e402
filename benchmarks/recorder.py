"""The engine's side of a workload: operators and functions that write statements of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from engine import Function, Statement, registry

Number = int | float


class Recorder:
    """`ops` for the engine: each function appends a node, and takes the op's operands and attributes."""

    def __init__(self, functions: list[Function] | None = None) -> None:
        """`functions` are those of the graph, which loops in it add to; by default none yet."""
        self.statements: list[Statement] = []
        self.functions = [] if functions is None else functions

    def __getattr__(self, name: str) -> Callable[..., Recorded]:
        return partial(self.append, name)

    def append(self, name: str, *operands: Recorded, **attrs: Any) -> Recorded:
        """One node more."""
        self.statements.append(Statement(registry().ops[name], tuple(x.node for x in operands), attrs))
        return Recorded(self, len(self.statements) - 1)

    def several(self, name: str, *operands: Recorded, count: int) -> list[Recorded]:
        """All results of an op that has so many."""
        return self._results(self.append(name, *operands), count)

    def scan(self, step: Step, consts: Some, carries: Some, sequences: Some = (), length: int | None = None) -> Results:
        """A loop over steps: the last carries, and what was stacked."""
        groups = len(consts), len(carries), len(sequences)
        stacked = 0

        def body(ops: Recorder, *operands: list[Recorded]) -> list[Recorded]:
            nonlocal stacked
            after, entries = step(ops, *operands)
            stacked = len(entries)
            return [*after, *entries]

        named = {"body": self._function(body, *groups), "carries": groups[1], "sequences": groups[2]}
        extent = {} if length is None else {"length": length}
        loop = self.append("scan", *consts, *carries, *sequences, **named, **extent)
        results = self._results(loop, groups[1] + stacked)
        return results[: groups[1]], results[groups[1] :]

    def while_loop(
        self, condition: Callable[..., Recorded], step: Callable[..., Some], consts: Some, carries: Some, max_steps: int
    ) -> list[Recorded]:
        """A loop as long as a condition holds: the last carries."""
        groups = len(consts), len(carries)
        named = {
            "condition": self._function(lambda *operands: [condition(*operands)], *groups),
            "body": self._function(step, *groups),
        }
        loop = self.append("while", *consts, *carries, **named, carries=groups[1], max_steps=max_steps)
        return self._results(loop, groups[1])

    def _function(self, body: Callable[..., Some], *groups: int) -> int:
        """The index of a function whose operands are passed in groups, of so many each."""
        inner = Recorder(self.functions)
        outputs = body(inner, *([inner.input() for _ in range(count)] for count in groups))
        nodes = [each.node for each in outputs]
        self.functions.append(Function(registry(), inner.statements, nodes, functions=self.functions))
        return len(self.functions) - 1

    def _results(self, loop: Recorded, count: int) -> list[Recorded]:
        return [self.get_output(loop, index=i) for i in range(count)]


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


Some = Sequence[Recorded]
Results = tuple[list[Recorded], list[Recorded]]
Step = Callable[..., tuple[Some, Some]]
