"""A call that also says what some nodes are, to whoever keeps that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from engine.calls.batch import Batch
from engine.calls.call import Call, FeedTypes, Results, Scope, checked, labelled
from engine.graph.ir import Value
from engine.graph.program import Program

#: the kind of these results
STORED_VALUES: Final = "stored"


@dataclass(frozen=True)
class Keeping(Call):
    """The results of `call`, and behind them the values of `kept`, whatever the call makes of its outputs."""

    call: Call
    kept: tuple[int, ...]

    @property
    def is_swept(self) -> bool:
        """As the call."""
        return self.call.is_swept

    @property
    def differentiated(self) -> tuple[int, ...]:
        """As of the call."""
        return self.call.differentiated

    @property
    def wrt_nodes(self) -> tuple[int, ...]:
        """As of the call."""
        return self.call.wrt_nodes

    def example(self, program: Program, types: FeedTypes) -> FeedTypes:
        """As for the call."""
        return self.call.example(program, types)

    def fitted(self, values: Mapping[int, Value]) -> Self:
        """With the call fitted."""
        return replace(self, call=self.call.fitted(values))

    def write_graph(self, scope: Scope) -> Results:
        """What the call writes, then the values."""
        first = self.call.write_graph(scope)
        values = [scope.value(node) for node in self.kept]
        return Results([*first.results, *labelled(STORED_VALUES, self.kept, values)], first.disconnected)


def keeping(call: Call, program: Program, nodes: Sequence[int]) -> Call:
    """`call`, with the values of `nodes` behind its results: of all examples, where it has many.

    Raises BadReference for a node that does not exist, or has several outputs.
    """
    kept = checked(program, "store", tuple(dict.fromkeys(nodes)))
    if isinstance(call, Batch):
        each = keeping(call.each, program, kept)
        return replace(call, outputs=each.outputs, each=each)
    return Keeping((*kept, *call.outputs), call, kept)
