"""Calls that a program answers for one example: values, gradients, products with Jacobian and Hessian, matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from engine.autodiff.calls.call import (
    Call,
    Derivative,
    GivenTypes,
    Label,
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
from engine.autodiff.jacobian import jacobian, jacobian_rows
from engine.autodiff.jvp import jvp
from engine.autodiff.vjp import Dependence, or_zeros, vjp
from engine.autodiff.vmap import vmap_onto
from engine.ir.errors import BadReference, InvalidField, NonScalarOutput, ShapeMismatch
from engine.ir.graph import Value
from engine.ir.opset import OPSET
from engine.ir.program import Program
from engine.ir.tensor_type import TensorType, show_shape

#: the role that cotangents are fed under: ("cotangents", node)
COTANGENTS = "cotangents"
#: the roles that directions are fed under: ("tangents", leaf), ("vectors", node)
TANGENTS, VECTORS = "tangents", "vectors"
#: of complex numbers there is no one matrix: two real ones say what four real ones, or two complex ones, would
BY_PARTS: Final = "a matrix is of real numbers: make it of two real leaves by make_complex, and name these"
_IN_PARTS: Final = "a matrix is of real numbers: name its real and its imag, or ask for products (vjp, jvp)"
#: of complex numbers there is no one matrix
_A_PART: Final = "a matrix is of real numbers: differentiate its real or its imag"


@dataclass(frozen=True)
class Values(Call):
    """The values of `outputs`."""

    @classmethod
    def of_program(cls, program: Program, outputs: Sequence[int] | None = None) -> Self:
        """Default to the last node. Raises BadReference and InvalidField."""
        return cls(outputs_of(program, outputs, last(program)))

    def write_graph(self, scope: Scope) -> Results:
        """The values."""
        return Results(scope.values(self.outputs))


@dataclass(frozen=True)
class Gradients(Call):
    """The gradients of `of` with respect to `wrt`; `cotangent` is the type of the seed, None for the number one."""

    of: int
    wrt: tuple[int, ...]
    cotangent: TensorType | None = None

    @classmethod
    def of_program(
        cls,
        program: Program,
        of: int | None = None,
        wrt: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
        cotangent: TensorType | None = None,
    ) -> Self:
        """Default to the last node and all parameters, with the value of `of`.

        Raises BadReference, and InvalidField when `wrt` or `outputs` names a node twice, or there is no parameter to
        default to.
        """
        (target,) = checked(program, "of", (last(program) if of is None else of,))
        by = parameters(program, wrt)
        return cls(outputs_of(program, outputs, target), target, by, cotangent)

    @property
    def differentiated(self) -> tuple[int, ...]:
        """`wrt`, then `of`."""
        return (*self.wrt, self.of)

    @property
    def wrt_nodes(self) -> tuple[int, ...]:
        """`wrt`."""
        return self.wrt

    @property
    def gradient_nodes(self) -> tuple[int, ...]:
        """`wrt`."""
        return self.wrt

    def write_graph(self, scope: Scope) -> Results:
        """The values, then the gradients. Raises NotDifferentiable, NonScalarOutput, and what a seed gets wrong."""
        gradients = self.pull(scope)
        whole = or_zeros(self.nodes(scope), gradients)
        lost = tuple(node for node, g in zip(self.wrt, gradients, strict=True) if g is None)
        return Results([*scope.values(self.outputs), *labelled("gradients", self.wrt, whole)], lost)

    def nodes(self, scope: Scope) -> list[Value]:
        """The nodes of `wrt`."""
        return scope.differentiable_nodes("wrt", self.wrt)

    def pull(self, scope: Scope) -> list[Value | None]:
        """The gradients; None where there is no path."""
        nodes = self.nodes(scope)  # first: an integer among them is to blame for an integer `of`
        of, seed = scope.differentiable_node("of", self.of), self._seed(scope)
        scope.begin(self.of)
        return vjp(scope.builder, [(of, seed)], nodes)

    def _seed(self, scope: Scope) -> Value:
        if self.cotangent is None:
            return scope.one(self.of)
        wanted = scope.nodes[self.of].type
        return scope.given(COTANGENTS, "its cotangent", self.of, self.cotangent, wanted)


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


@dataclass(frozen=True)
class Jacobian(Derivative):
    """∂output/∂x for each of `outputs` and each x of `wrt`: shape of the output, then shape of x; x's dtype."""

    @property
    def is_swept(self) -> bool:
        """Sweep by rows or by columns."""
        return True

    @classmethod
    def of_program(
        cls, program: Program, wrt: Sequence[int] | None = None, outputs: Sequence[int] | None = None
    ) -> Self:
        """Default to the last node and all parameters. Raises BadReference and InvalidField."""
        asked = outputs_of(program, outputs, last(program))
        return cls(asked, parameters(program, wrt))

    def write_graph(self, scope: Scope) -> Results:
        """The values, then a block for each output and each node of `wrt`; zeros where there is no path."""
        nodes = scope.real_nodes("wrt", self.wrt, BY_PARTS)
        blocks, known = _Blocks("jacobian", self.wrt, nodes), Dependence()
        outputs = scope.real_nodes("outputs", self.outputs, _IN_PARTS)
        for i, y in zip(self.outputs, outputs, strict=True):
            scope.begin(i)
            blocks.add(i, y, jacobian(scope.builder, y, nodes, scope.chunk_bytes, known))
        return Results([*scope.values(self.outputs), *blocks.results])


@dataclass(frozen=True)
class Hessian(Gradients):
    """∂²of/∂row ∂column for all pairs of `wrt`: shape of the row, then shape and dtype of the column."""

    @property
    def is_swept(self) -> bool:
        """Sweep by rows or by columns."""
        return True

    def nodes(self, scope: Scope) -> list[Value]:
        """The nodes of `wrt`, which are real."""
        return scope.real_nodes("wrt", self.wrt, BY_PARTS)

    def write_graph(self, scope: Scope) -> Results:
        """The values, the gradients, then the blocks, row by row."""
        first, nodes = super().write_graph(scope), self.nodes(scope)
        gradients = [value for label, value in first.results if label.kind == "gradients"]
        blocks, known = _Blocks("hessian", self.wrt, nodes), Dependence()
        for row, g in zip(self.wrt, gradients, strict=True):
            scope.begin(self.of)
            blocks.add(row, g, jacobian_rows(scope.builder, g, nodes, scope.chunk_bytes, known))
        return Results([*first.results, *blocks.results], first.disconnected)


class _Blocks:
    """Blocks by `wrt`, of shapes that they have in common: one node of zeros serves all that look the same."""

    def __init__(self, kind: str, wrt: Sequence[int], nodes: Sequence[Value]) -> None:
        self.results: list[tuple[Label, Value]] = []
        self._kind = kind
        self._wrt = list(zip(wrt, nodes, strict=True))
        self._zeros: dict[TensorType, Value] = {}

    def add(self, row: int, y: Value, derivatives: Sequence[Value | None]) -> None:
        """The blocks of one row, whose value is y; zeros where there is none."""
        for (column, x), block in zip(self._wrt, derivatives, strict=True):
            value = block
            if value is None:
                type = x.type.with_shape((*y.shape, *x.shape))
                if type not in self._zeros:
                    self._zeros[type] = x.full_like(0.0, type.shape)
                value = self._zeros[type]
            self.results.append((Label(self._kind, (row, column)), value))


@dataclass(frozen=True)
class GradientOrJacobian(Gradients):
    """∂of/∂x for each x of `wrt`, of x's dtype: of x's shape where `of` has one element, whatever its shape is.

    Else the shape is that of `of`, then that of x. Graphs of opset 1 have no such matrices.
    """

    @property
    def is_swept(self) -> bool:
        """Sweep by rows or by columns, if it is a matrix."""
        return True

    def sweeps_in(self, scope: Scope) -> bool:
        """Sweep if `of` has several elements, or none."""
        return scope.nodes[self.of].type.size != 1

    def write_graph(self, scope: Scope) -> Results:
        """The values, then the derivatives; zeros, and `disconnected`, where there is no path.

        Raises as `Gradients`; of a matrix, as `Jacobian`, and NonScalarOutput in a graph of opset 1.
        """
        if not self.sweeps_in(scope):
            return super().write_graph(scope)
        nodes = scope.real_nodes("wrt", self.wrt, BY_PARTS)  # first, as of a gradient
        of = scope.real_node("of", self.of, _A_PART)
        _require_matrices(scope, self.of)
        scope.begin(self.of)
        jacobians = jacobian(scope.builder, of, nodes, scope.chunk_bytes)
        blocks = [
            x.full_like(0.0, (*of.shape, *x.shape)) if block is None else block
            for x, block in zip(nodes, jacobians, strict=True)
        ]
        lost = tuple(node for node, block in zip(self.wrt, jacobians, strict=True) if block is None)
        return Results([*scope.values(self.outputs), *labelled("gradients", self.wrt, blocks)], lost)


def _require_matrices(scope: Scope, of: int) -> None:
    """Raise NonScalarOutput in a graph of opset 1."""
    if scope.program.opset > OPSET:
        return
    shape = show_shape(scope.nodes[of].shape)
    detail = (
        f'has shape {shape}, whose Jacobian batch gives since opset 2: say "opset": 2 in the graph, which is of '
        "opset 1, or reduce it to one element (sum, mean)"
    )
    raise scope.program.statements[of].located(NonScalarOutput(detail, expected="one element", got=shape), of)
