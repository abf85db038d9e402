"""Calls around another call: on many examples at once, summed over examples, or storing values besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from engine.calls.call import Call, FeedTypes, Results, Scope, checked, distinct
from engine.calls.gradient_or_jacobian import GradientOrJacobian
from engine.calls.values import Values
from engine.graph.errors import EngineError, InvalidField, MissingFeed, ShapeMismatch
from engine.graph.ir import Value
from engine.graph.program import Program
from engine.graph.tensor_type import TensorType
from engine.transforms.vmap import vmap_onto


@dataclass(frozen=True)
class Batch(Call):
    """`each`, for N examples: the feeds of the leaves in `mapped` have a leading axis N, and so has every result.

    The graph itself is written for one example. What does not depend on a mapped leaf is computed once.
    """

    each: Call
    mapped: tuple[tuple[int, TensorType], ...]

    @classmethod
    def of_program(
        cls,
        program: Program,
        types: FeedTypes,
        mapped: Sequence[int],
        of: int | None = None,
        wrt: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
    ) -> Self:
        """Defaults as `Gradients`; where nothing is there to differentiate by, values alone.

        Where `of` has not one element, Jacobians stand for gradients, in graphs since opset 2.

        Raises BadReference, InvalidField, MissingFeed, and ShapeMismatch when the leading axes differ.
        """
        only_values = of is None and not wrt and not program.parameters
        each = (
            Values.of_program(program, outputs)
            if only_values
            else GradientOrJacobian.of_program(program, of, wrt, outputs)
        )
        return cls(each.outputs, each, _mapped(program, types, mapped))

    @property
    def is_swept(self) -> bool:
        """Return whether `each` is."""
        return self.each.is_swept

    def sweeps_in(self, scope: Scope) -> bool:
        """Return whether `each` is."""
        return self.each.sweeps_in(scope)

    @property
    def size(self) -> int:
        """N."""
        return self.mapped[0][1].shape[0]

    @property
    def differentiated(self) -> tuple[int, ...]:
        """Return those of `each`."""
        return self.each.differentiated

    @property
    def wrt_nodes(self) -> tuple[int, ...]:
        """Return those of `each`."""
        return self.each.wrt_nodes

    @property
    def gradient_nodes(self) -> tuple[int, ...]:
        """Return those of `each`."""
        return self.each.gradient_nodes

    def example(self, program: Program, types: FeedTypes) -> FeedTypes:
        """The mapped types without their leading axis."""
        return {**types, **{node: type.with_shape(type.shape[1:]) for node, type in self.mapped}}

    def write_graph(self, scope: Scope) -> Results:
        """The results of `each`, along the leading axis: a chunk of a sweep is one of all examples."""
        within = replace(scope, chunk_bytes=max(1, scope.chunk_bytes // max(1, self.size)))
        single = self.each.write_graph(within)
        results = vmap_onto(scope.builder, [value for _, value in single.results], self._examples(scope), self.size)
        labels = [label for label, _ in single.results]
        return Results(list(zip(labels, results, strict=True)), single.disconnected)

    def _examples(self, scope: Scope) -> dict[Value, Value]:
        """Map each mapped leaf that the answer needs to the feed of all examples."""
        feeds = {n.attrs["feed"]: scope.builder.value(i) for i, n in enumerate(scope.builder.nodes) if n.is_leaf}
        many = {}
        for node, type in self.mapped:
            if node in feeds:
                scope.builder.refeed(feeds[node], ("one of", node))
                many[feeds[node]] = scope.builder.leaf(type, node)
        return many


def _mapped(program: Program, types: FeedTypes, mapped: Sequence[int]) -> tuple[tuple[int, TensorType], ...]:
    if not mapped:
        raise InvalidField(
            "mapped is empty: name the leaves whose feeds have a leading axis", expected="a leaf", got="none"
        )
    nodes = distinct("mapped", checked(program, "mapped", mapped))
    size = None
    for node in nodes:
        try:
            size = _extent(node, program, types, size)
        except EngineError as error:
            raise program.statements[node].located(error, node) from None
    return tuple((node, types[node]) for node in nodes)


def _extent(node: int, program: Program, types: FeedTypes, size: int | None) -> int:
    """The leading extent of a mapped feed, the same as the ones before."""
    if node not in program.leaves:
        raise InvalidField("mapped names this node, but only leaves can be mapped", expected="a leaf")
    if node not in types:
        raise MissingFeed("is mapped, but has no feed", expected="a feed")
    if not types[node].ndim:
        raise ShapeMismatch("is mapped: its feed must have a leading axis, but is 0-d", expected="an axis", got="none")
    extent = types[node].shape[0]
    if size is not None and extent != size:
        detail = f"is mapped: its feed must have the leading extent {size} of the others, but has {extent}"
        raise ShapeMismatch(detail, expected=str(size), got=str(extent))
    return extent
