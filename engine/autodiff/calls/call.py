"""The contract of a call, and the scope in which it appends its results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from engine.ir.errors import (
    BadReference,
    DtypeMismatch,
    EngineError,
    Faults,
    InvalidField,
    NonScalarOutput,
    NotDifferentiable,
)
from engine.ir.graph import Builder, Origin, Value
from engine.ir.program import Program
from engine.ir.tensor_type import TensorType, require_type, show_shape

FeedTypes = Mapping[int, TensorType]
#: types of tensors that a call takes for nodes, in addition to the feeds of leaves
GivenTypes = tuple[tuple[int, TensorType], ...]


class Offset(NamedTuple):
    """Place of a node's elements along an axis over the elements of several nodes: the first one, and their number."""

    node: int
    offset: int
    size: int


class Label(NamedTuple):
    """Name of a result: its kind (values, gradients, tangents, jacobian, hvp, hessian), and the nodes it belongs to.

    A result of the kind matrix belongs to all nodes of `offsets`, which are along both of its axes.
    """

    kind: str
    nodes: tuple[int, ...]
    offsets: tuple[Offset, ...] = ()


class Results(NamedTuple):
    """Results in the order of the response, and the nodes of `wrt` without a path to the differentiated node."""

    results: list[tuple[Label, Value]]
    disconnected: tuple[int, ...] = ()


@dataclass(frozen=True)
class Call(ABC):
    """A question about a program: the values of `outputs`, and the results that a subclass adds."""

    outputs: tuple[int, ...]

    @property
    def is_swept(self) -> bool:
        """Whether the call maps a product over unit vectors, which may be done in chunks."""
        return False

    def sweeps_in(self, scope: Scope) -> bool:
        """Return whether the call sweeps for these nodes: `is_swept`, unless that depends on their types."""
        return self.is_swept

    @property
    def roots(self) -> tuple[int, ...]:
        """The nodes that must be built; the node that the call is about comes last."""
        return (*self.outputs, *self.differentiated)

    @property
    def differentiated(self) -> tuple[int, ...]:
        """The nodes that derivatives are taken of or with respect to."""
        return ()

    @property
    def wrt_nodes(self) -> tuple[int, ...]:
        """The nodes that derivatives are taken with respect to."""
        return ()

    @property
    def gradient_nodes(self) -> tuple[int, ...]:
        """The nodes whose gradients are among the results."""
        return ()

    def example(self, program: Program, types: FeedTypes) -> FeedTypes:
        """Return the feed types that the graph is written for; by default, the types that are fed."""
        return types

    def with_types(self, values: Mapping[int, Value]) -> Self:
        """Return the call with its own tensors (cotangents, tangents, vectors) given the types that they must have."""
        return self

    @abstractmethod
    def write_graph(self, scope: Scope) -> Results:
        """Append the results. Raises EngineError."""


@dataclass(frozen=True)
class Derivative(Call):
    """Call that differentiates its outputs with respect to the nodes in `wrt`."""

    wrt: tuple[int, ...]

    @property
    def differentiated(self) -> tuple[int, ...]:
        """`wrt`, then the outputs."""
        return (*self.wrt, *self.outputs)

    @property
    def wrt_nodes(self) -> tuple[int, ...]:
        """`wrt`."""
        return self.wrt


@dataclass(frozen=True)
class Scope:
    """Program written into a builder, `grad` nodes expanded: the value of each node, and the bytes a sweep may hold.

    For a node in `totals`, that value replaces its own wherever it is an output or is differentiated. Differentiation
    is still with respect to the values in `nodes`.
    """

    program: Program
    builder: Builder
    nodes: Mapping[int, Value]
    chunk_bytes: int
    totals: Mapping[int, Value] = field(default_factory=dict)

    def value(self, node: int) -> Value:
        """Return the value that represents a node in the results."""
        return self.totals[node] if node in self.totals else self.nodes[node]

    def values(self, outputs: Sequence[int]) -> list[tuple[Label, Value]]:
        """Return the labelled values of `outputs`."""
        return [(Label("values", (i,)), self.value(i)) for i in outputs]

    def differentiable_node(self, role: str, node: int) -> Value:
        """Return the value of a node to differentiate, or to differentiate with respect to.

        Raises NotDifferentiable.
        """
        value = self.nodes[node] if role == "wrt" else self.value(node)
        if value.type.is_differentiable:
            return value
        name = value.dtype.name
        detail = f"{role} names this node, whose dtype {name} has no derivatives"
        # A leaf has the dtype of its feed, so the client can change it.
        if node in self.program.leaves:
            detail = f"is {name}, which has no derivatives: feed it as a float dtype, or take it out of {role}"
        error = NotDifferentiable(detail, expected="a float dtype", got=name).in_field(role, node=node)
        raise self.program.statements[node].located(error, node)

    def differentiable_nodes(self, role: str, nodes: Sequence[int]) -> list[Value]:
        """Return the values of several nodes. Raises NotDifferentiable, naming all that have no derivatives."""
        faults, values = Faults(), list[Value]()
        for node in nodes:
            with faults:
                values.append(self.differentiable_node(role, node))
        faults.report()
        return values

    def call_tensor(self, role: str, subject: str, node: int, type: TensorType, expected: TensorType) -> Value:
        """Append a leaf for a tensor that comes with the call, fed under (role, node).

        Raises ShapeMismatch, DtypeMismatch.
        """
        try:
            require_type(type, expected, subject)
        except EngineError as error:
            raise self.program.statements[node].located(error, node).in_field(role, node=node) from None
        return self.builder.leaf(type, (role, node))

    def real_node(self, role: str, node: int, advice: str) -> Value:
        """Return a differentiable node that must be real. Raises DtypeMismatch with the `advice`."""
        value = self.differentiable_node(role, node)
        if value.type.is_complex:
            received = value.dtype.name
            error = DtypeMismatch(
                f"{role} names this node, which is {received}: {advice}", expected="a real dtype", got=received
            )
            raise self.program.statements[node].located(error, node).in_field(role, node=node)
        return value

    def real_nodes(self, role: str, nodes: Sequence[int], advice: str) -> list[Value]:
        """Return the values of several nodes.

        Raises NotDifferentiable and DtypeMismatch, naming all that are not real floats.
        """
        faults, values = Faults(), list[Value]()
        for node in nodes:
            with faults:
                values.append(self.real_node(role, node, advice))
        faults.report()
        return values

    def unit_seed(self, of: int, *, takes_cotangent: bool) -> Value:
        """Return the seed for a node with one element, 1. Raises NonScalarOutput, NotDifferentiable, DtypeMismatch.

        Errors advise giving a cotangent if the call takes one.
        """
        alternative = "give a cotangent of that dtype, or " if takes_cotangent else ""
        value = self.real_node("of", of, f"{alternative}make it real (real, imag, abs)")
        if value.type.size != 1:
            shape = show_shape(value.shape)
            alternative = "give a cotangent of that shape" if takes_cotangent else "ask for its jacobian"
            detail = f"has shape {shape}: reduce it to one element (sum, mean), or {alternative}"
            error = NonScalarOutput(detail, expected="one element", got=shape).in_field("of", node=of)
            raise self.program.statements[of].located(error, of)
        self.begin(of)
        return value.full_like(1.0)

    def begin(self, node: int) -> None:
        """Attribute the nodes appended from here on to the backward pass of `node`."""
        self.builder.origin = Origin(node, self.program.statements[node].op.name, True)


def last(program: Program) -> int:
    """Return the last node, the default subject of a call. Raises InvalidField for an empty graph."""
    if not program.statements:
        error = InvalidField("the graph has no nodes", expected="at least one node", got="none")
        raise error.in_field("graph", "nodes")
    return len(program.statements) - 1


def checked(program: Program, field: str, nodes: Sequence[int]) -> tuple[int, ...]:
    """Return `nodes`, the value of `field`, after checking that they exist and have one output each.

    Raises BadReference, and InvalidField for an empty graph.
    """
    count = last(program) + 1
    for node in nodes:
        if not 0 <= node < count:
            raise BadReference(
                f"{field} names node {node}, but the nodes are 0 to {count - 1}",
                expected=f"0 to {count - 1}",
                got=str(node),
            ).in_field(field, node=node)
        statement = program.statements[node]
        if statement.op.several:
            several = BadReference(
                f"{field} names this node, which has several outputs: name one of its get_output nodes"
            )
            raise statement.located(several, node).in_field(field, node=node)
    return tuple(nodes)


def outputs_of(program: Program, outputs: Sequence[int] | None, default: int) -> tuple[int, ...]:
    """Return `outputs`, or `default` if there are none. Raises BadReference, and InvalidField for a repeated node."""
    return distinct("outputs", checked(program, "outputs", outputs or (default,)))


def parameters(program: Program, wrt: Sequence[int] | None) -> tuple[int, ...]:
    """Return `wrt`, by default all parameters.

    Raises BadReference, and InvalidField for a repeated node or an empty `wrt`.
    """
    targets = checked(program, "wrt", wrt or program.parameters)
    if not targets:
        raise InvalidField(
            "wrt is empty and the graph has no parameter nodes: name the nodes to differentiate with respect to",
            expected="at least one node in wrt",
            got="none",
        ).in_field("wrt")
    return distinct("wrt", targets)


def distinct(field: str, nodes: tuple[int, ...]) -> tuple[int, ...]:
    """Return `nodes`. Raises InvalidField if a node is repeated."""
    seen: set[int] = set()
    for node in nodes:
        if node in seen:
            error = InvalidField(f"{field} names node {node} twice", node=node, expected="distinct nodes")
            raise error.in_field(field, node=node)
        seen.add(node)
    return nodes


def retyped(tensors: GivenTypes, values: Mapping[int, Value]) -> GivenTypes:
    """Return the tensors' types, each replaced with the type of its node."""
    return tuple((node, values[node].type) for node, _ in tensors)


def labelled(kind: str, nodes: Sequence[int], values: Sequence[Value]) -> list[tuple[Label, Value]]:
    """Return results of one kind, one per node."""
    return [(Label(kind, (node,)), value) for node, value in zip(nodes, values, strict=True)]
