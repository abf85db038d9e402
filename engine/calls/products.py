"""Products with the Jacobian, from either side, and with the Hessian."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from engine.calls.call import (
    Call,
    Derivative,
    GivenTypes,
    Results,
    Scope,
    checked,
    distinct,
    fitting,
    labelled,
    last,
    outputs_of,
    parameters,
)
from engine.calls.values import COTANGENTS, Gradients
from engine.graph.errors import BadReference, InvalidField, ShapeMismatch
from engine.graph.ir import Value
from engine.graph.program import Program
from engine.graph.tensor_type import TensorType
from engine.transforms.jvp import jvp
from engine.transforms.vjp import or_zeros, vjp
from engine.transforms.vmap import vmap_onto

#: the roles that directions are fed under: ("tangents", leaf), ("vectors", node)
TANGENTS, VECTORS = "tangents", "vectors"


@dataclass(frozen=True)
class VJP(Derivative):
    """cotangents · Jacobian: gradients of Σ sum(output · cotangent) over all outputs, with respect to `wrt`.

    `cotangents` has a type for each output, in their order. Where `batched`, each has a leading axis K, and so have
    the gradients: K products in one execution.
    """

    cotangents: GivenTypes
    batched: bool = False

    @classmethod
    def of_program(
        cls,
        program: Program,
        cotangents: GivenTypes,
        wrt: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
        batched: bool = False,
    ) -> Self:
        """Default to the last node and all parameters. Raises BadReference and InvalidField."""
        asked = outputs_of(program, outputs, last(program))
        matched = _one_for_each("cotangents", "outputs", asked, cotangents)
        return cls(asked, parameters(program, wrt), matched, batched)

    @property
    def gradient_nodes(self) -> tuple[int, ...]:
        """`wrt`."""
        return self.wrt

    def fitted(self, values: Mapping[int, Value]) -> Self:
        """Give the cotangents their nodes' types."""
        return replace(self, cotangents=fitting(self.cotangents, values))

    def write_graph(self, scope: Scope) -> Results:
        """The values, then the gradients."""
        nodes, outputs = (
            scope.differentiable_nodes("wrt", self.wrt),
            scope.differentiable_nodes("outputs", self.outputs),
        )
        count = self._count(scope) if self.batched else None
        seeds = [
            self._seed(scope, y, node, type, count) for y, (node, type) in zip(outputs, self.cotangents, strict=True)
        ]
        scope.begin(self.outputs[-1])
        pairs = [(y, one) for y, (one, _) in zip(outputs, seeds, strict=True)]
        derivatives = vjp(scope.builder, pairs, nodes)
        whole = or_zeros(nodes, derivatives)
        if count is not None:
            whole = vmap_onto(scope.builder, whole, dict(seeds), count)
        lost = tuple(node for node, g in zip(self.wrt, derivatives, strict=True) if g is None)
        return Results([*scope.values(self.outputs), *labelled("gradients", self.wrt, whole)], lost)

    def _seed(self, scope: Scope, y: Value, node: int, type: TensorType, count: int | None) -> tuple[Value, Value]:
        """The cotangent of one product, and what is fed: the same, or where batched all of them."""
        if count is None:
            seed = scope.given(COTANGENTS, "its cotangent", node, type, y.type)
            return seed, seed
        wanted = y.type.with_shape((count, *y.shape))
        single = scope.builder.leaf(y.type, ("one of", node))
        return single, scope.given(COTANGENTS, "its batched cotangent", node, type, wanted)

    def _count(self, scope: Scope) -> int:
        """K. Raises ShapeMismatch when the first cotangent has no leading axis."""
        node, type = self.cotangents[0]
        if type.ndim:
            return type.shape[0]
        detail = "its cotangent must have a leading axis K, since batched is true, but is 0-d"
        raise scope.program.statements[node].located(
            ShapeMismatch(detail, expected="a leading axis", got="shape []"), node
        )


@dataclass(frozen=True)
class JVP(Call):
    """Jacobian · tangents: the derivative of each output along `tangents`, which have a type for each leaf named.

    Leaves that are not named stay as they are.
    """

    tangents: GivenTypes

    @classmethod
    def of_program(cls, program: Program, tangents: GivenTypes, outputs: Sequence[int] | None = None) -> Self:
        """Default to the last node. Raises BadReference, and InvalidField for a tangent of a node that is no leaf."""
        asked = outputs_of(program, outputs, last(program))
        for node in distinct("tangents", checked(program, "tangents", [node for node, _ in tangents])):
            if node not in program.leaves:
                wrong = InvalidField("tangents name this node, but only leaves take one", expected="a leaf")
                raise program.statements[node].located(wrong, node)
        if not tangents:
            raise InvalidField("tangents are missing: give one for at least one leaf", expected="a tangent", got="none")
        return cls(asked, tangents)

    @property
    def differentiated(self) -> tuple[int, ...]:
        """The leaves that move, then the outputs."""
        return (*self.wrt_nodes, *self.outputs)

    @property
    def wrt_nodes(self) -> tuple[int, ...]:
        """The leaves that move."""
        return tuple(node for node, _ in self.tangents)

    def fitted(self, values: Mapping[int, Value]) -> Self:
        """Give the tangents their nodes' types."""
        return replace(self, tangents=fitting(self.tangents, values))

    def write_graph(self, scope: Scope) -> Results:
        """The values, then the tangents; zeros where an output does not move."""
        leaves, outputs = (
            scope.differentiable_nodes("tangents", self.wrt_nodes),
            scope.differentiable_nodes("outputs", self.outputs),
        )
        moves = [
            (x, scope.given(TANGENTS, "its tangent", node, type, x.type))
            for x, (node, type) in zip(leaves, self.tangents, strict=True)
        ]
        scope.begin(self.outputs[-1])
        derivatives = jvp(scope.builder, outputs, moves)
        whole = or_zeros(outputs, derivatives)
        return Results([*scope.values(self.outputs), *labelled("tangents", self.outputs, whole)])


@dataclass(frozen=True)
class HVP(Gradients):
    """Hessian · vectors: the derivative of the gradients of `of` along `vectors`, one for each node of `wrt`.

    Exact: forward mode over reverse mode. For nodes of `wrt` of which one depends on another, this is the derivative
    of the one's gradient by the other, each node counting as itself.
    """

    vectors: GivenTypes = ()

    @classmethod
    def along(
        cls,
        program: Program,
        vectors: GivenTypes,
        of: int | None = None,
        wrt: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
    ) -> Self:
        """Defaults as `Gradients`. Raises BadReference and InvalidField."""
        base = Gradients.of_program(program, of, wrt, outputs)
        return cls(base.outputs, base.of, base.wrt, None, _one_for_each("vectors", "wrt", base.wrt, vectors))

    def fitted(self, values: Mapping[int, Value]) -> Self:
        """Give the vectors their nodes' types."""
        return replace(self, vectors=fitting(self.vectors, values))

    def write_graph(self, scope: Scope) -> Results:
        """The values, the gradients, then the products."""
        first = super().write_graph(scope)
        nodes = self.nodes(scope)
        moves = [
            (x, scope.given(VECTORS, "its vector", node, type, x.type))
            for x, (node, type) in zip(nodes, self.vectors, strict=True)
        ]
        gradients = [value for label, value in first.results if label.kind == "gradients"]
        scope.begin(self.of)
        derivatives = jvp(scope.builder, gradients, moves)
        whole = or_zeros(nodes, derivatives)
        return Results([*first.results, *labelled("hvp", self.wrt, whole)], first.disconnected)


def _one_for_each(field: str, of: str, nodes: tuple[int, ...], given: GivenTypes) -> GivenTypes:
    """`given` in the order of `nodes`. Raises BadReference and InvalidField unless there is one for each of them."""
    types = dict(given)
    distinct(field, tuple(node for node, _ in given))
    for node in types:
        if node not in nodes:
            raise BadReference(
                f"{field} name node {node}, which is not in {of}", expected=f"a node of {of}", got=str(node)
            )
    for node in nodes:
        if node not in types:
            detail = f"{field} have none for node {node}: one is needed for each node of {of}"
            raise InvalidField(detail, node=node, expected=f"one for each node of {of}", got="none")
    return tuple((node, types[node]) for node in nodes)
