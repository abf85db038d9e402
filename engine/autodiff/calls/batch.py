"""Calls that wrap another call: on many examples at once, summed over examples, or storing further values."""

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

#: kind of the results that `Storing` adds
STORED_VALUES: Final = "stored"


@dataclass(frozen=True)
class Wrapper(Call):
    """Call around another one, `each`, which states what to differentiate."""

    each: Call

    @property
    def is_swept(self) -> bool:
        """Whether `each` is swept."""
        return self.each.is_swept

    def sweeps_in(self, scope: Scope) -> bool:
        """Return whether `each` sweeps."""
        return self.each.sweeps_in(scope)

    @property
    def differentiated(self) -> tuple[int, ...]:
        """The nodes of `each`."""
        return self.each.differentiated

    @property
    def wrt_nodes(self) -> tuple[int, ...]:
        """The nodes of `each`."""
        return self.each.wrt_nodes

    @property
    def gradient_nodes(self) -> tuple[int, ...]:
        """The nodes of `each`."""
        return self.each.gradient_nodes


@dataclass(frozen=True)
class Batch(Wrapper):
    """`each` for N examples: the feeds of the leaves in `mapped` have a leading axis N, and so has every result.

    The graph is written for one example. Nodes that do not depend on a mapped leaf are computed once.
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
        """Use the defaults of `Gradients`; if there is nothing to differentiate with respect to, ask for values alone.

        If `of` does not have one element, the results are Jacobians, in graphs since opset 2.

        Raises BadReference, InvalidField, MissingFeed, and ShapeMismatch if the leading axes differ.
        """
        only_values = of is None and not wrt and not program.parameters
        # Without anything to differentiate with respect to, a batch is a batched forward pass.
        each = (
            Values.of_program(program, outputs)
            if only_values
            else GradientOrJacobian.of_program(program, of, wrt, outputs)
        )
        return cls(each.outputs, each, _mapped(program, types, mapped))

    @property
    def size(self) -> int:
        """The number of examples, N."""
        return self.mapped[0][1].shape[0]

    def example(self, program: Program, types: FeedTypes) -> FeedTypes:
        """Return the feed types, mapped ones without their leading axis."""
        return {**types, **{node: type.with_shape(type.shape[1:]) for node, type in self.mapped}}

    def write_graph(self, scope: Scope) -> Results:
        """Append the results of `each` along the leading axis."""
        # A product of the inner call is computed for all N examples at once, so it may hold an N-th of the chunk.
        inner = replace(scope, chunk_bytes=max(1, scope.chunk_bytes // max(1, self.size)))
        per_example = self.each.write_graph(inner)
        results = vmap_onto(
            scope.builder, [value for _, value in per_example.results], self._examples(scope), self.size
        )
        labels = [label for label, _ in per_example.results]
        return Results(list(zip(labels, results, strict=True)), per_example.disconnected)

    def _examples(self, scope: Scope) -> dict[Value, Value]:
        """Map each mapped leaf that the results need to a new leaf, fed with all examples."""
        feeds = {n.attrs["feed"]: scope.builder.value(i) for i, n in enumerate(scope.builder.nodes) if n.is_leaf}
        examples = {}
        for node, type in self.mapped:
            if node in feeds:
                # The leaf for one example cedes its key to the leaf for all, and has no readers in the batched graph.
                scope.builder.refeed(feeds[node], ("one of", node))
                examples[feeds[node]] = scope.builder.leaf(type, node)
        return examples


def _mapped(program: Program, types: FeedTypes, mapped: Sequence[int]) -> tuple[tuple[int, TensorType], ...]:
    if not mapped:
        raise InvalidField(
            "mapped is empty: name the leaves whose feeds have a leading axis", expected="a leaf", got="none"
        ).in_field("mapped")
    nodes = distinct("mapped", checked(program, "mapped", mapped))
    size = None
    for node in nodes:
        try:
            size = _extent(node, program, types, size)
        except EngineError as error:
            raise program.statements[node].located(error, node) from None
    return tuple((node, types[node]) for node in nodes)


def _extent(node: int, program: Program, types: FeedTypes, size: int | None) -> int:
    """Return the leading extent of a mapped feed. Raises ShapeMismatch unless it equals the previous `size`."""
    if node not in program.leaves:
        error = InvalidField("mapped names this node, but only leaves can be mapped", expected="a leaf")
        raise error.in_field("mapped", node=node)
    if node not in types:
        raise MissingFeed("is mapped, but has no feed", expected="a feed")
    if not types[node].ndim:
        flat = ShapeMismatch("is mapped: its feed must have a leading axis, but is 0-d", expected="an axis", got="none")
        raise flat.in_field("feeds", node=node)
    extent = types[node].shape[0]
    if size is not None and extent != size:
        detail = (
            f"is mapped: its feed must have the leading extent {size}, like the other mapped feeds, but has {extent}"
        )
        raise ShapeMismatch(detail, expected=str(size), got=str(extent)).in_field("feeds", node=node)
    return extent


@dataclass(frozen=True)
class BatchSum(Batch):
    """`each`, summed over N examples: no result has the example axis. The sum itself is differentiated.

    So memory holds cotangents of a batch (for a Jacobian, of some rows at a time) but never gradients of single
    examples. If `is_mean`, the caller that adds up the blocks divides by N once, at the end. `block` is the number of
    examples that one plan sums, None if unspecified. The graph is that of the sum over all examples in `mapped`.
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
        """Use the defaults of `Batch`.

        Raises as that does, and InvalidField for a node in `wrt` that depends on a mapped leaf.
        """
        call = replace(cls.of_program(program, types, mapped, of, wrt, outputs), is_mean=is_mean, block=block)
        differing = program.dependents(node for node, _ in call.mapped)
        for node in call.wrt_nodes:
            if node in differing:
                detail = (
                    "wrt names this node, which differs between examples: a sum over them has no gradient with "
                    "respect to it"
                )
                error = InvalidField(detail, expected="a node that depends on no mapped leaf")
                raise program.statements[node].located(error, node).in_field("wrt", node=node)
        return call

    def of_examples(self, count: int) -> Self:
        """Return the sum over `count` of the examples."""
        mapped = tuple((node, type.with_shape((count, *type.shape[1:]))) for node, type in self.mapped)
        return replace(self, mapped=mapped, is_mean=False, block=None)

    def write_graph(self, scope: Scope) -> Results:
        """Append the sums and their gradients. Raises as `each`, and DtypeMismatch for a sum of non-floats."""
        return self.each.write_graph(replace(scope, totals=self._totals(scope)))

    def _totals(self, scope: Scope) -> Mapping[int, Value]:
        """Append the sum over the examples of each node that is an output or is differentiated."""
        # `differentiated` lists `wrt` first. Those are the same for all examples, and need no sum.
        wrt_count = len(self.each.wrt_nodes)
        nodes = list(dict.fromkeys((*self.each.outputs, *self.each.differentiated[wrt_count:])))
        for node in nodes:
            _require_float(scope, node, "outputs" if node in self.each.outputs else "of")
        batched = vmap_onto(scope.builder, [scope.nodes[i] for i in nodes], self._examples(scope), self.size)
        totals = {}
        for node, value in zip(nodes, batched, strict=True):
            scope.builder.origin = Origin(node, scope.program.statements[node].op.name)
            totals[node] = value.sum(axes=(0,))
        return totals


def _require_float(scope: Scope, node: int, field: str) -> None:
    """Raise DtypeMismatch for a node, named in `field`, whose dtype has no derivatives."""
    dtype = scope.nodes[node].dtype
    if not scope.nodes[node].type.is_differentiable:
        error = DtypeMismatch(
            f"is {dtype.name}, but only floats can be summed over examples: cast it, or remove it from the outputs",
            expected="a float dtype",
            got=dtype.name,
        )
        raise scope.program.statements[node].located(error, node).in_field(field, node=node)


@dataclass(frozen=True)
class Storing(Wrapper):
    """Results of `each`, then the values of the nodes `stored`, even if the call returns something else of its outputs.

    Then the gradients with respect to the nodes in `gradients` follow again.
    """

    stored: tuple[int, ...]
    gradients: tuple[int, ...] = ()

    def example(self, program: Program, types: FeedTypes) -> FeedTypes:
        """Return the feed types that the call's graph is written for."""
        return self.each.example(program, types)

    def with_types(self, values: Mapping[int, Value]) -> Self:
        """Return the call with the tensors of `each` typed."""
        return replace(self, each=self.each.with_types(values))

    def write_graph(self, scope: Scope) -> Results:
        """Append the results of `each`, then the values, then the gradients."""
        first = self.each.write_graph(scope)
        gradients = {label.nodes[0]: value for label, value in first.results if label.kind == "gradients"}
        values = [*(scope.value(node) for node in self.stored), *(gradients[node] for node in self.gradients)]
        named = labelled(STORED_VALUES, (*self.stored, *self.gradients), values)
        return Results([*first.results, *named], first.disconnected)


def keeping(call: Call, program: Program, nodes: Sequence[int], gradients: Sequence[int] = ()) -> Call:
    """Return `call` with the values of `nodes` after its results; for a batch, the values of all examples.

    Then come its gradients with respect to the nodes `gradients`, which must be in its `gradient_nodes`. Raises
    BadReference for a node that does not exist or has several outputs.
    """
    stored = checked(program, "store", tuple(dict.fromkeys(nodes)))
    if isinstance(call, Batch):
        inner = keeping(call.each, program, stored, gradients)
        return replace(call, outputs=inner.outputs, each=inner)
    return Storing((*stored, *call.outputs), call, stored, tuple(dict.fromkeys(gradients)))
