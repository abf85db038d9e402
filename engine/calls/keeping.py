"""A call that also gives the values of some nodes, and gradients by some, to be stored."""

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
    """The results of `call`, and behind them the values of `kept`, whatever the call makes of its outputs.

    Last, once more, those of its gradients that are by the nodes `gradients`.
    """

    call: Call
    kept: tuple[int, ...]
    gradients: tuple[int, ...] = ()

    @property
    def is_swept(self) -> bool:
        """Return whether the call is."""
        return self.call.is_swept

    def sweeps_in(self, scope: Scope) -> bool:
        """Return whether the call is."""
        return self.call.sweeps_in(scope)

    @property
    def differentiated(self) -> tuple[int, ...]:
        """Return those of the call."""
        return self.call.differentiated

    @property
    def wrt_nodes(self) -> tuple[int, ...]:
        """Return those of the call."""
        return self.call.wrt_nodes

    @property
    def gradient_nodes(self) -> tuple[int, ...]:
        """Return those of the call."""
        return self.call.gradient_nodes

    def example(self, program: Program, types: FeedTypes) -> FeedTypes:
        """Return the types that the call's graph is written for."""
        return self.call.example(program, types)

    def fitted(self, values: Mapping[int, Value]) -> Self:
        """Fit the call."""
        return replace(self, call=self.call.fitted(values))

    def write_graph(self, scope: Scope) -> Results:
        """Append what the call writes, then the values, then the gradients."""
        first = self.call.write_graph(scope)
        by = {label.nodes[0]: value for label, value in first.results if label.kind == "gradients"}
        kept = [*(scope.value(node) for node in self.kept), *(by[node] for node in self.gradients)]
        named = labelled(STORED_VALUES, (*self.kept, *self.gradients), kept)
        return Results([*first.results, *named], first.disconnected)


def keeping(call: Call, program: Program, nodes: Sequence[int], gradients: Sequence[int] = ()) -> Call:
    """`call`, with the values of `nodes` behind its results: of all examples, where it has many.

    Then its gradients by the nodes `gradients`, of its `gradient_nodes`. Raises BadReference for a node that does not
    exist, or has several outputs.
    """
    kept = checked(program, "store", tuple(dict.fromkeys(nodes)))
    if isinstance(call, Batch):
        each = keeping(call.each, program, kept, gradients)
        return replace(call, outputs=each.outputs, each=each)
    return Keeping((*kept, *call.outputs), call, kept, tuple(dict.fromkeys(gradients)))
