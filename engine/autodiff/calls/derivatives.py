"""Calls on one example: values, gradients, products with Jacobian and Hessian, and both as matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, product
from typing import Final, Self

from engine.autodiff.calls.call import (
    Call,
    Derivative,
    GivenTypes,
    Label,
    Offset,
    Results,
    Scope,
    checked,
    distinct,
    labelled,
    last,
    outputs_of,
    parameters,
    retyped,
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

#: feed role of cotangents: ("cotangents", node)
COTANGENTS = "cotangents"
#: feed roles of directions: ("tangents", leaf), ("vectors", node)
TANGENTS, VECTORS = "tangents", "vectors"
#: advice for complex nodes: a derivative between complex numbers has no single complex matrix, since conj is not linear
BY_PARTS: Final = "matrices are real, so build it from two real leaves with make_complex, and name those leaves"
_IN_PARTS: Final = "matrices are real, so name its real and imag nodes, or ask for products (vjp, jvp)"
#: the same advice for a complex `of`
_A_PART: Final = "matrices are real, so differentiate its real or imag node"


@dataclass(frozen=True)
class Values(Call):
    """Values of `outputs`."""

    @classmethod
    def of_program(cls, program: Program, outputs: Sequence[int] | None = None) -> Self:
        """Default to the last node. Raises BadReference and InvalidField."""
        return cls(outputs_of(program, outputs, last(program)))

    def write_graph(self, scope: Scope) -> Results:
        """Append the values."""
        return Results(scope.values(self.outputs))


@dataclass(frozen=True)
class Gradients(Call):
    """Gradients of `of` with respect to `wrt`. `cotangent` is the type of the seed; None for the number one.

    Errors advise giving a cotangent if `takes_cotangent`.
    """

    of: int
    wrt: tuple[int, ...]
    cotangent: TensorType | None = None
    takes_cotangent: bool = False

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

        Raises BadReference, and InvalidField if `wrt` or `outputs` repeats a node, or if there is no parameter to
        default to.
        """
        (target,) = checked(program, "of", (last(program) if of is None else of,))
        targets = parameters(program, wrt)
        return cls(outputs_of(program, outputs, target), target, targets, cotangent)

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
        """Append the values, then the gradients.

        Raises NotDifferentiable, NonScalarOutput, and errors of the seed's type.
        """
        gradients = self.pull(scope)
        filled = or_zeros(self.nodes(scope), gradients)
        disconnected = tuple(node for node, g in zip(self.wrt, gradients, strict=True) if g is None)
        return Results([*scope.values(self.outputs), *labelled("gradients", self.wrt, filled)], disconnected)

    def nodes(self, scope: Scope) -> list[Value]:
        """Return the values of the nodes in `wrt`."""
        return scope.differentiable_nodes("wrt", self.wrt)

    def pull(self, scope: Scope) -> list[Value | None]:
        """Append the gradients; None for a node without a path."""
        nodes = self.nodes(scope)  # first: an integer in `wrt` is the cause of an integer `of`
        target, seed = scope.differentiable_node("of", self.of), self._seed(scope)
        scope.begin(self.of)
        return vjp(scope.builder, [(target, seed)], nodes)

    def _seed(self, scope: Scope) -> Value:
        if self.cotangent is None:
            return scope.unit_seed(self.of, takes_cotangent=self.takes_cotangent)
        expected = scope.nodes[self.of].type
        return scope.call_tensor(COTANGENTS, "its cotangent", self.of, self.cotangent, expected)


@dataclass(frozen=True)
class VJP(Derivative):
    """cotangents · Jacobian: gradients of Σ sum(output · cotangent) over all outputs, with respect to `wrt`.

    `cotangents` has a type for each output, in the order of `outputs`. If `batched`, each has a leading axis K, and so
    do the gradients: K products in one execution.
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
        checked_outputs = outputs_of(program, outputs, last(program))
        matched = _in_order("cotangents", "outputs", checked_outputs, cotangents)
        return cls(checked_outputs, parameters(program, wrt), matched, batched)

    @property
    def gradient_nodes(self) -> tuple[int, ...]:
        """`wrt`."""
        return self.wrt

    def with_types(self, values: Mapping[int, Value]) -> Self:
        """Give the cotangents the types of their nodes."""
        return replace(self, cotangents=retyped(self.cotangents, values))

    def write_graph(self, scope: Scope) -> Results:
        """Append the values, then the gradients."""
        # Write one product. If batched, map it over the K cotangents, which are fed as one tensor.
        nodes, outputs = (
            scope.differentiable_nodes("wrt", self.wrt),
            scope.differentiable_nodes("outputs", self.outputs),
        )
        count = self._count(scope) if self.batched else None
        seeds = [
            self._seed(scope, y, node, type, count) for y, (node, type) in zip(outputs, self.cotangents, strict=True)
        ]
        scope.begin(self.outputs[-1])
        pairs = [(y, seed) for y, (seed, _) in zip(outputs, seeds, strict=True)]
        derivatives = vjp(scope.builder, pairs, nodes)
        filled = or_zeros(nodes, derivatives)
        if count is not None:
            filled = vmap_onto(scope.builder, filled, dict(seeds), count)
        disconnected = tuple(node for node, g in zip(self.wrt, derivatives, strict=True) if g is None)
        return Results([*scope.values(self.outputs), *labelled("gradients", self.wrt, filled)], disconnected)

    def _seed(self, scope: Scope, y: Value, node: int, type: TensorType, count: int | None) -> tuple[Value, Value]:
        """Return the cotangent of one product, and the leaf that is fed: the same, or a batched one for all of them."""
        if count is None:
            seed = scope.call_tensor(COTANGENTS, "its cotangent", node, type, y.type)
            return seed, seed
        expected = y.type.with_shape((count, *y.shape))
        single = scope.builder.leaf(y.type, ("one of", node))
        return single, scope.call_tensor(COTANGENTS, "its batched cotangent", node, type, expected)

    def _count(self, scope: Scope) -> int:
        """Return K. Raises ShapeMismatch if the first cotangent has no leading axis."""
        node, type = self.cotangents[0]
        if type.ndim:
            return type.shape[0]
        detail = "its cotangent must have a leading axis K, since batched is true, but is 0-d"
        error = ShapeMismatch(detail, expected="a leading axis", got="shape []").in_field(COTANGENTS, node=node)
        raise scope.program.statements[node].located(error, node)


@dataclass(frozen=True)
class JVP(Call):
    """Jacobian · tangents: the derivative of each output along `tangents`, which has a type for each leaf that moves.

    The other leaves stay fixed.
    """

    tangents: GivenTypes

    @classmethod
    def of_program(cls, program: Program, tangents: GivenTypes, outputs: Sequence[int] | None = None) -> Self:
        """Default to the last node. Raises BadReference, and InvalidField for a tangent of a node that is no leaf."""
        checked_outputs = outputs_of(program, outputs, last(program))
        for node in distinct("tangents", checked(program, "tangents", [node for node, _ in tangents])):
            if node not in program.leaves:
                error = InvalidField("tangents name this node, but only leaves take one", expected="a leaf")
                raise program.statements[node].located(error, node).in_field(TANGENTS, node=node)
        if not tangents:
            missing = InvalidField(
                "tangents are missing: give one for at least one leaf", expected="a tangent", got="none"
            )
            raise missing.in_field(TANGENTS)
        return cls(checked_outputs, tangents)

    @property
    def differentiated(self) -> tuple[int, ...]:
        """The leaves that move, then the outputs."""
        return (*self.wrt_nodes, *self.outputs)

    @property
    def wrt_nodes(self) -> tuple[int, ...]:
        """The leaves that move."""
        return tuple(node for node, _ in self.tangents)

    def with_types(self, values: Mapping[int, Value]) -> Self:
        """Give the tangents the types of their nodes."""
        return replace(self, tangents=retyped(self.tangents, values))

    def write_graph(self, scope: Scope) -> Results:
        """Append the values, then the tangents; zeros for an output that does not move."""
        leaves, outputs = (
            scope.differentiable_nodes("tangents", self.wrt_nodes),
            scope.differentiable_nodes("outputs", self.outputs),
        )
        tangents = [
            (x, scope.call_tensor(TANGENTS, "its tangent", node, type, x.type))
            for x, (node, type) in zip(leaves, self.tangents, strict=True)
        ]
        scope.begin(self.outputs[-1])
        derivatives = jvp(scope.builder, outputs, tangents)
        filled = or_zeros(outputs, derivatives)
        return Results([*scope.values(self.outputs), *labelled("tangents", self.outputs, filled)])


@dataclass(frozen=True)
class HVP(Gradients):
    """Hessian · vectors: the derivative of the gradients of `of` along `vectors`, one for each node in `wrt`.

    Exact: forward mode over reverse mode. If a node in `wrt` depends on another, the result is the derivative of the
    former's gradient with respect to the latter, each node counting as itself.
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
        """Use the defaults of `Gradients`. Raises BadReference and InvalidField."""
        base = Gradients.of_program(program, of, wrt, outputs)
        return cls(base.outputs, base.of, base.wrt, vectors=_in_order("vectors", "wrt", base.wrt, vectors))

    def with_types(self, values: Mapping[int, Value]) -> Self:
        """Give the vectors the types of their nodes."""
        return replace(self, vectors=retyped(self.vectors, values))

    def write_graph(self, scope: Scope) -> Results:
        """Append the values, the gradients, then the products."""
        first = super().write_graph(scope)
        nodes = self.nodes(scope)
        tangents = [
            (x, scope.call_tensor(VECTORS, "its vector", node, type, x.type))
            for x, (node, type) in zip(nodes, self.vectors, strict=True)
        ]
        gradients = [value for label, value in first.results if label.kind == "gradients"]
        scope.begin(self.of)
        derivatives = jvp(scope.builder, gradients, tangents)
        filled = or_zeros(nodes, derivatives)
        return Results([*first.results, *labelled("hvp", self.wrt, filled)], first.disconnected)


def _in_order(field: str, nodes_field: str, nodes: tuple[int, ...], tensors: GivenTypes) -> GivenTypes:
    """Return `tensors` in the order of `nodes`. Raises BadReference and InvalidField unless each node has one."""
    types = dict(tensors)
    distinct(field, tuple(node for node, _ in tensors))
    for node in types:
        if node not in nodes:
            raise BadReference(
                f"{field} names node {node}, which is not in {nodes_field}",
                expected=f"a node in {nodes_field}",
                got=str(node),
            ).in_field(field, node=node)
    for node in nodes:
        if node not in types:
            detail = f"{field} has no entry for node {node}: each node in {nodes_field} needs one"
            missing = InvalidField(detail, node=node, expected=f"one entry for each node in {nodes_field}", got="none")
            raise missing.in_field(field)
    return tuple((node, types[node]) for node in nodes)


@dataclass(frozen=True)
class Jacobian(Derivative):
    """∂output/∂x for each output and each x in `wrt`, of shape (*output.shape, *x.shape) and x's dtype."""

    @property
    def is_swept(self) -> bool:
        """True: the sweep is by rows or by columns."""
        return True

    @classmethod
    def of_program(
        cls, program: Program, wrt: Sequence[int] | None = None, outputs: Sequence[int] | None = None
    ) -> Self:
        """Default to the last node and all parameters. Raises BadReference and InvalidField."""
        checked_outputs = outputs_of(program, outputs, last(program))
        return cls(checked_outputs, parameters(program, wrt))

    def write_graph(self, scope: Scope) -> Results:
        """Append the values, then a block for each output and each node in `wrt`; zeros where there is no path."""
        nodes = scope.real_nodes("wrt", self.wrt, BY_PARTS)
        # All outputs are differentiated with respect to the same nodes, so the search for paths is shared.
        blocks, dependence = _Blocks("jacobian", self.wrt, nodes), Dependence()
        outputs = scope.real_nodes("outputs", self.outputs, _IN_PARTS)
        for i, y in zip(self.outputs, outputs, strict=True):
            scope.begin(i)
            blocks.add(i, y, jacobian(scope.builder, y, nodes, scope.chunk_bytes, dependence))
        return Results([*scope.values(self.outputs), *blocks.results])


@dataclass(frozen=True)
class Hessian(Gradients):
    """∂²of/∂row ∂column for all pairs of `wrt`: shape of the row, then shape and dtype of the column.

    If `is_matrix`, these blocks are flat and make up one matrix, in the order of `wrt`.
    """

    is_matrix: bool = False

    @property
    def is_swept(self) -> bool:
        """True: the sweep is by rows or by columns."""
        return True

    def nodes(self, scope: Scope) -> list[Value]:
        """Return the values of the nodes in `wrt`, which must be real."""
        return scope.real_nodes("wrt", self.wrt, BY_PARTS)

    def write_graph(self, scope: Scope) -> Results:
        """Append the values, the gradients, then the blocks, row by row, or the matrix.

        Raises as `Gradients` does, and InvalidField for a matrix of several dtypes.
        """
        first, nodes = super().write_graph(scope), self.nodes(scope)
        gradients = [value for label, value in first.results if label.kind == "gradients"]
        blocks, dependence = _Blocks("hessian", self.wrt, nodes), Dependence()
        for row, g in zip(self.wrt, gradients, strict=True):
            scope.begin(self.of)
            blocks.add(row, g, jacobian_rows(scope.builder, g, nodes, scope.chunk_bytes, dependence))
        results = [_matrix(blocks.results, self.wrt, nodes)] if self.is_matrix else blocks.results
        return Results([*first.results, *results], first.disconnected)


def _matrix(blocks: Sequence[tuple[Label, Value]], wrt: Sequence[int], nodes: Sequence[Value]) -> tuple[Label, Value]:
    """Join the blocks of all pairs of `wrt`, row by row, into one matrix. Raises InvalidField for several dtypes."""
    if len(dtypes := dict.fromkeys(x.type.dtype.name for x in nodes)) > 1:
        received = ", ".join(dtypes)
        detail = f"a matrix has one dtype, but the nodes in wrt have {received}: cast them, or ask for blocks"
        raise InvalidField(detail, expected="nodes of one dtype", got=received).in_field("layout")
    sizes = [x.type.size for x in nodes]
    flat = [block.reshape(shape=shape) for (_, block), shape in zip(blocks, product(sizes, sizes), strict=True)]
    rows = [_joined(flat[i : i + len(wrt)], 1) for i in range(0, len(flat), len(wrt))]
    offsets = tuple(map(Offset, wrt, accumulate(sizes, initial=0), sizes))
    return Label("matrix", (), offsets), _joined(rows, 0)


def _joined(parts: Sequence[Value], axis: int) -> Value:
    return parts[0].cat(*parts[1:], axis=axis) if len(parts) > 1 else parts[0]


class _Blocks:
    """Blocks by `wrt`. Blocks of zeros of the same type share one node."""

    def __init__(self, kind: str, wrt: Sequence[int], nodes: Sequence[Value]) -> None:
        self.results: list[tuple[Label, Value]] = []
        self._kind = kind
        self._wrt = list(zip(wrt, nodes, strict=True))
        self._zeros: dict[TensorType, Value] = {}

    def add(self, row: int, y: Value, derivatives: Sequence[Value | None]) -> None:
        """Add the blocks of one row, whose value is y; zeros where there is no path."""
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
    """∂of/∂x for each x in `wrt`, of x's dtype. If `of` has one element, in any shape, the result has x's shape.

    Otherwise the shape is that of `of`, then that of x. Graphs of opset 1 do not support these matrices.
    """

    @property
    def is_swept(self) -> bool:
        """True: if the result is a matrix, it is swept by rows or by columns."""
        return True

    def sweeps_in(self, scope: Scope) -> bool:
        """Return whether `of` has any number of elements but one."""
        return scope.nodes[self.of].type.size != 1

    def write_graph(self, scope: Scope) -> Results:
        """Append the values, then the derivatives; zeros, and an entry in `disconnected`, where there is no path.

        Raises as `Gradients` does; for a matrix, as `Jacobian` does, and NonScalarOutput in a graph of opset 1.
        """
        if not self.sweeps_in(scope):
            return super().write_graph(scope)
        nodes = scope.real_nodes("wrt", self.wrt, BY_PARTS)  # first, as in `Gradients.pull`
        target = scope.real_node("of", self.of, _A_PART)
        _require_matrices(scope, self.of)
        scope.begin(self.of)
        jacobians = jacobian(scope.builder, target, nodes, scope.chunk_bytes)
        blocks = [
            x.full_like(0.0, (*target.shape, *x.shape)) if block is None else block
            for x, block in zip(nodes, jacobians, strict=True)
        ]
        disconnected = tuple(node for node, block in zip(self.wrt, jacobians, strict=True) if block is None)
        return Results([*scope.values(self.outputs), *labelled("gradients", self.wrt, blocks)], disconnected)


def _require_matrices(scope: Scope, of: int) -> None:
    """Raise NonScalarOutput in a graph of opset 1."""
    if scope.program.opset > OPSET:
        return
    shape = show_shape(scope.nodes[of].shape)
    detail = (
        f'has shape {shape}, but batch computes Jacobians only since opset 2: add "opset": 2 to the graph, which uses '
        "opset 1, or reduce this node to one element (sum, mean)"
    )
    error = NonScalarOutput(detail, expected="one element", got=shape).in_field("of", node=of)
    raise scope.program.statements[of].located(error, of)
