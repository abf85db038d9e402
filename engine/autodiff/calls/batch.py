"""Calls around another call: on many examples at once, summed over examples, or storing values besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from engine.autodiff.calls.call import Call, FeedTypes, Results, Scope, checked, distinct, labelled
from engine.autodiff.calls.derivatives import GradientOrJacobian, Values
from engine.autodiff.vmap import vmap_onto
from engine.ir.errors import DtypeMismatch, EngineError, InvalidField, MissingFeed, ShapeMismatch
from engine.ir.graph import Origin, Value
from engine.ir.program import Program
from engine.ir.tensor_type import TensorType

#: the kind of these results
STORED_VALUES: Final = "stored"


@dataclass(frozen=True)
class Wrapper(Call):
    """A call around another, `each`, which says what is differentiated."""

    each: Call

    @property
    def is_swept(self) -> bool:
        """Return whether `each` is."""
        return self.each.is_swept

    def sweeps_in(self, scope: Scope) -> bool:
        """Return whether `each` is."""
        return self.each.sweeps_in(scope)

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


@dataclass(frozen=True)
class Batch(Wrapper):
    """`each`, for N examples: the feeds of the leaves in `mapped` have a leading axis N, and so has every result.

    The graph itself is written for one example. What does not depend on a mapped leaf is computed once.
    """

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
    def size(self) -> int:
        """N."""
        return self.mapped[0][1].shape[0]

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


@dataclass(frozen=True)
class BatchSum(Batch):
    """`each`, added up over N examples: no result has their axis. What was differentiated is the sum itself.

    So what is held are cotangents of a batch, of some rows at a time where it is a Jacobian, and never the gradients of
    single examples. Where `is_mean`, whoever adds up divides by N, once and last; `block` is how many examples are to
    be added up by one plan, None where nobody said. The graph that it writes is that of the sum over all that are
    `mapped`.
    """

    is_mean: bool = False
    block: int | None = None

    @classmethod
    def over_program(
        cls,
        program: Program,
        types: FeedTypes,
        mapped: Sequence[int],
        of: int | None = None,
        wrt: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
        *,
        is_mean: bool = False,
        block: int | None = None,
    ) -> Self:
        """Defaults as `Batch`. Raises as that does, and InvalidField for a node of `wrt` that examples differ in."""
        call = replace(cls.of_program(program, types, mapped, of, wrt, outputs), is_mean=is_mean, block=block)
        differing = program.dependent(node for node, _ in call.mapped)
        for node in call.wrt_nodes:
            if node in differing:
                detail = "wrt names this node, which examples differ in: a sum over them has no gradient by it"
                error = InvalidField(detail, expected="a node that depends on no mapped leaf")
                raise program.statements[node].located(error, node)
        return call

    def of_examples(self, count: int) -> Self:
        """The sum over so many of the examples."""
        mapped = tuple((node, type.with_shape((count, *type.shape[1:]))) for node, type in self.mapped)
        return replace(self, mapped=mapped, is_mean=False, block=None)

    def write_graph(self, scope: Scope) -> Results:
        """The sums, and the gradients of one. Raises as `each`, and DtypeMismatch for a sum of what is no float."""
        return self.each.write_graph(replace(scope, totals=self._totals(scope)))

    def _totals(self, scope: Scope) -> Mapping[int, Value]:
        """The sum over the examples, for each node that is asked for or differentiated."""
        by = len(self.each.wrt_nodes)
        nodes = list(dict.fromkeys((*self.each.outputs, *self.each.differentiated[by:])))
        for node in nodes:
            _require_float(scope, node)
        many = vmap_onto(scope.builder, [scope.nodes[i] for i in nodes], self._examples(scope), self.size)
        totals = {}
        for node, value in zip(nodes, many, strict=True):
            scope.builder.origin = Origin(node, scope.program.statements[node].op.name)
            totals[node] = value.sum(axes=(0,))
        return totals


def _require_float(scope: Scope, node: int) -> None:
    """Raise DtypeMismatch for a node that is none."""
    dtype = scope.nodes[node].dtype
    if not scope.nodes[node].type.is_differentiable:
        error = DtypeMismatch(
            f"is {dtype.name}, and sums over examples are of floats: cast it, or leave it out of the outputs",
            expected="a float dtype",
            got=dtype.name,
        )
        raise scope.program.statements[node].located(error, node)


@dataclass(frozen=True)
class Keeping(Wrapper):
    """The results of `each`, and behind them the values of `kept`, whatever the call makes of its outputs.

    Last, once more, those of its gradients that are by the nodes `gradients`.
    """

    kept: tuple[int, ...]
    gradients: tuple[int, ...] = ()

    def example(self, program: Program, types: FeedTypes) -> FeedTypes:
        """Return the types that the call's graph is written for."""
        return self.each.example(program, types)

    def fitted(self, values: Mapping[int, Value]) -> Self:
        """Fit the call."""
        return replace(self, each=self.each.fitted(values))

    def write_graph(self, scope: Scope) -> Results:
        """Append what the call writes, then the values, then the gradients."""
        first = self.each.write_graph(scope)
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
