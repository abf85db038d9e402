"""The contract of a call, and the place where it writes its results."""

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
#: tensors that a call takes for nodes beside the feeds of leaves
GivenTypes = tuple[tuple[int, TensorType], ...]


class Label(NamedTuple):
    """Name of a result: its kind (values, gradients, tangents, jacobian, hvp, hessian), and the nodes that it is of."""

    kind: str
    nodes: tuple[int, ...]


class Results(NamedTuple):
    """Results in the order of the answer, and the nodes of `wrt` that have no path to what was differentiated."""

    results: list[tuple[Label, Value]]
    disconnected: tuple[int, ...] = ()


@dataclass(frozen=True)
class Call(ABC):
    """The values of `outputs`, and what a subclass adds."""

    outputs: tuple[int, ...]

    @property
    def is_swept(self) -> bool:
        """Whether it maps a product over unit vectors, which may be done in chunks."""
        return False

    def sweeps_in(self, scope: Scope) -> bool:
        """Whether it does so of these nodes: where it `is_swept`, but for a call that goes by their types."""
        return self.is_swept

    @property
    def roots(self) -> tuple[int, ...]:
        """The nodes that must be there, the one that the call is about last."""
        return (*self.outputs, *self.differentiated)

    @property
    def differentiated(self) -> tuple[int, ...]:
        """The nodes that derivatives are taken of or by."""
        return ()

    @property
    def wrt_nodes(self) -> tuple[int, ...]:
        """Nodes that derivatives are taken with respect to."""
        return ()

    @property
    def gradient_nodes(self) -> tuple[int, ...]:
        """The nodes whose gradients are among the results."""
        return ()

    def example(self, program: Program, types: FeedTypes) -> FeedTypes:
        """The types of the feeds that the graph is written for; here, the types that are fed."""
        return types

    def fitted(self, values: Mapping[int, Value]) -> Self:
        """The same call, the tensors that it takes beside feeds being of the types that they must have."""
        return self

    @abstractmethod
    def write_graph(self, scope: Scope) -> Results:
        """Append the results. Raises EngineError."""


@dataclass(frozen=True)
class Derivative(Call):
    """A call that differentiates its outputs by the nodes of `wrt`."""

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
    """A program in a builder, `grad` nodes written out: where its nodes went, and the bytes that a sweep may hold.

    Of a node in `totals`, that stands for its value where this is asked for or differentiated; what is differentiated
    by are the `nodes`.
    """

    program: Program
    builder: Builder
    nodes: Mapping[int, Value]
    chunk_bytes: int
    totals: Mapping[int, Value] = field(default_factory=dict)

    def value(self, node: int) -> Value:
        """Return the value that stands for a node in results."""
        return self.totals[node] if node in self.totals else self.nodes[node]

    def values(self, outputs: Sequence[int]) -> list[tuple[Label, Value]]:
        """The results that `outputs` are."""
        return [(Label("values", (i,)), self.value(i)) for i in outputs]

    def differentiable_node(self, role: str, node: int) -> Value:
        """The value of a node that is differentiated, or differentiated by. Raises NotDifferentiable."""
        value = self.nodes[node] if role == "wrt" else self.value(node)
        if value.type.is_differentiable:
            return value
        name = value.dtype.name
        detail = f"{role} names this node, whose dtype {name} has no derivatives"
        if node in self.program.leaves:
            detail = f"is {name}, which has no derivatives: feed it as a float dtype, or take it out of {role}"
        raise self.program.statements[node].located(NotDifferentiable(detail, expected="a float dtype", got=name), node)

    def differentiable_nodes(self, role: str, nodes: Sequence[int]) -> list[Value]:
        """The values of several. Raises NotDifferentiable for all that are not float."""
        faults, values = Faults(), list[Value]()
        for node in nodes:
            with faults:
                values.append(self.differentiable_node(role, node))
        faults.report()
        return values

    def given(self, role: str, what: str, node: int, type: TensorType, wanted: TensorType) -> Value:
        """A tensor that comes with the call, fed under (role, node). Raises ShapeMismatch, DtypeMismatch."""
        try:
            require_type(type, wanted, what)
        except EngineError as error:
            raise self.program.statements[node].located(error, node) from None
        return self.builder.leaf(type, (role, node))

    def real_node(self, role: str, node: int, instead: str) -> Value:
        """Return a differentiable node that has to be real. Raises DtypeMismatch, which says what to do `instead`."""
        value = self.differentiable_node(role, node)
        if value.type.is_complex:
            got = value.dtype.name
            error = DtypeMismatch(
                f"{role} names this node, which is {got}: {instead}", expected="a real dtype", got=got
            )
            raise self.program.statements[node].located(error, node)
        return value

    def real_nodes(self, role: str, nodes: Sequence[int], instead: str) -> list[Value]:
        """The values of several. Raises NotDifferentiable and DtypeMismatch for all that are not real floats."""
        faults, values = Faults(), list[Value]()
        for node in nodes:
            with faults:
                values.append(self.real_node(role, node, instead))
        faults.report()
        return values

    def one(self, of: int) -> Value:
        """The seed of a node with one element: 1. Raises NonScalarOutput, NotDifferentiable, and DtypeMismatch."""
        value = self.real_node("of", of, "give a cotangent of that dtype, or make it real (real, imag, abs)")
        if value.type.size != 1:
            shape = show_shape(value.shape)
            detail = f"has shape {shape}: give a cotangent of that shape, or reduce it to one element (sum, mean)"
            raise self.program.statements[of].located(NonScalarOutput(detail, expected="one element", got=shape), of)
        self.begin(of)
        return value.full_like(1.0)

    def begin(self, node: int) -> None:
        """Count what is written from here on as the backward pass of `node`."""
        self.builder.origin = Origin(node, self.program.statements[node].op.name, True)


def last(program: Program) -> int:
    """The node that a call is about unless it says otherwise. Raises InvalidField for an empty graph."""
    if not program.statements:
        raise InvalidField("the graph has no nodes", expected="at least one node", got="none")
    return len(program.statements) - 1


def checked(program: Program, field: str, nodes: Sequence[int]) -> tuple[int, ...]:
    """`nodes`, which stand in `field`, once they all exist and have one output.

    Raises BadReference, and InvalidField for an empty graph.
    """
    count = last(program) + 1
    for node in nodes:
        if not 0 <= node < count:
            raise BadReference(
                f"{field} names node {node}, but the nodes are 0 to {count - 1}",
                expected=f"0 to {count - 1}",
                got=str(node),
            )
        statement = program.statements[node]
        if statement.op.several:
            several = BadReference(f"{field} names this node, which has several outputs: name a get_output of it")
            raise statement.located(several, node)
    return tuple(nodes)


def outputs_of(program: Program, outputs: Sequence[int] | None, default: int) -> tuple[int, ...]:
    """`outputs`, each of which comes back once. Raises BadReference, and InvalidField when one is there twice."""
    return distinct("outputs", checked(program, "outputs", outputs or (default,)))


def parameters(program: Program, wrt: Sequence[int] | None) -> tuple[int, ...]:
    """`wrt`, by default all parameters. Raises BadReference, and InvalidField when there is none or one is twice."""
    by = checked(program, "wrt", wrt or program.parameters)
    if not by:
        raise InvalidField(
            "wrt is empty and the graph has no parameter nodes: name the nodes to differentiate with respect to",
            expected="at least one node in wrt",
            got="none",
        )
    return distinct("wrt", by)


def distinct(field: str, nodes: tuple[int, ...]) -> tuple[int, ...]:
    """`nodes`, once none is there twice. Raises InvalidField."""
    seen: set[int] = set()
    for node in nodes:
        if node in seen:
            raise InvalidField(f"{field} names node {node} twice", node=node, expected="distinct nodes")
        seen.add(node)
    return nodes


def fitting(given: GivenTypes, values: Mapping[int, Value]) -> GivenTypes:
    """`given`, each of the type of its node."""
    return tuple((node, values[node].type) for node, _ in given)


def labelled(kind: str, nodes: Sequence[int], values: Sequence[Value]) -> list[tuple[Label, Value]]:
    """Results of one kind, one a node."""
    return [(Label(kind, (node,)), value) for node, value in zip(nodes, values, strict=True)]
