"""Loops as their first, middle and last step, written out, and loops of those between: what is certified of a loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from engine.bodies.runs_functions import Parts, in_parts
from engine.bodies.tidy import tidy
from engine.graph.body import Body
from engine.graph.ir import Builder, Node, Value
from engine.graph.tensor_type import BOOL, INT64
from engine.oplib.pack import bundled
from engine.oplib.slices import cut


class Peeled:
    """Nodes as they are copied into `builder`, such steps in the places of loops; and so on in their bodies.

    Of the loops `while`, those have any that are in `ran`, by their node: how many steps, and whether that was the end.
    `hidden` are copies of what the loops between read, which stand for steps that nobody looks at.
    """

    def __init__(self, builder: Builder, ran: Mapping[int, tuple[int, bool]]) -> None:
        self.builder, self._ran = builder, ran
        self.hidden: set[int] = set()

    def copy(self, node: Node, operands: Sequence[Value], index: int = -1) -> Value:
        """Append a node, which is the graph's where it has an index."""
        self.builder.origin = node.origin
        if node.op.name == "get_output":
            return operands[0].output(node.attrs["index"])
        if node.op.name == "scan" and node.attrs["length"]:
            return bundled(self.builder, self._steps(operands, **node.attrs))
        if index in self._ran:
            steps, finished = self._ran[index]
            body, carries = node.attrs["body"], node.attrs["carries"]
            found = self._steps(operands, body=body, carries=carries, sequences=0, length=steps, reverse=False)
            ended = self.builder.full((), steps, INT64), self.builder.full((), finished, BOOL)
            return bundled(self.builder, [*found, *ended])
        return self.builder.copy(node, operands)

    def _steps(
        self, operands: Sequence[Value], *, body: Body, carries: int, sequences: int, length: int, reverse: bool
    ) -> list[Value]:
        """The results of a scan."""
        parts = in_parts(operands, carries, sequences)
        state, stacks = list(parts.carries), list[list[Value]]()
        for first, last in _pieces(length):
            start, stop = (length - last, length - first) if reverse else (first, last)
            through = [cut(x, 0, start, stop) for x in parts.sequences]
            piece = Parts(parts.consts, state, through)
            found = self._one(body, piece) if stop - start == 1 else self._between(body, piece, stop - start, reverse)
            state = found[:carries]
            stacks.append(found[carries:])
        joined = zip(*(reversed(stacks) if reverse else stacks), strict=True)
        return [*state, *[first.cat(*rest, axis=0) if rest else first for first, *rest in joined]]

    def _one(self, body: Body, parts: Parts) -> list[Value]:
        """One step: the carries, and stacks of one entry."""
        entries = [x.reshape(shape=x.shape[1:]) for x in parts.sequences]
        operands, values = [*parts.consts, *parts.carries, *entries], list[Value]()
        origin = self.builder.origin
        graph = tidy(body).graph
        for node in graph.nodes:
            read = [values[i] for i in node.operands]
            values.append(operands[node.attrs["feed"]] if node.is_leaf else self.copy(node, read))
        self.builder.origin = origin
        results, carries = [values[i] for i in graph.outputs], len(parts.carries)
        return [*results[:carries], *[x.reshape(shape=(1, *x.shape)) for x in results[carries:]]]

    def _between(self, body: Body, parts: Parts, length: int, reverse: bool) -> list[Value]:
        """Several steps, as a loop of what is hidden."""
        operands = [x.identity() for x in (*parts.consts, *parts.carries, *parts.sequences)]
        self.hidden.update(x.index for x in operands)
        attrs: dict[str, Any] = {
            "body": body,
            "carries": len(parts.carries),
            "sequences": len(parts.sequences),
            "length": length,
            "reverse": reverse,
        }
        loop = self.builder.emit(self.builder.registry.ops["scan"], operands, attrs)
        return [loop.output(k) for k in range(len(body.outputs))]


def _pieces(length: int) -> list[tuple[int, int]]:
    """Where the first, middle and last step, and what lies between them, begin and end."""
    single = sorted({0, length // 2, length - 1}) if length else []
    ends = sorted({0, length, *single, *[k + 1 for k in single]})
    return list(pairwise(ends))
