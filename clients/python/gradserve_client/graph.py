"""Graphs as a program writes them: every method appends a node and returns its handle."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.ops import TENSOR_ATTRIBUTES, GraphOps, NodeOps
from gradserve_client.tensors import Array, ArrayLike, as_array, dtype_name, from_json

_PACKAGE: Final = str(Path(__file__).parent)


class Line(NamedTuple):
    """Where a node was written."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.number}" if self.number else self.file


@dataclass(frozen=True, eq=False, repr=False)
class Node(NodeOps):
    """A node of a graph: the handle under which it is an operand, is fed, and has its results looked up.

    Arithmetic and comparisons make nodes, but `==`, which says whether two handles are the same one. Python's numbers
    take the dtype of the node in arithmetic; in comparisons they are float64 or int64, and so are compared exactly.
    """

    graph: Graph
    id: int
    op: str
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    name: str | None
    line: Line

    # NumPy leaves operators with its arrays to this class.
    __array_ufunc__ = None

    def __repr__(self) -> str:
        called = f" {self.name!r}" if self.name else ""
        return f"<node {self.id}: {self.op}{called}>"

    def __bool__(self) -> bool:
        raise InputError(f"{self.told} has no value before the graph is run; where() and cond() choose within it")

    @property
    def told(self) -> str:
        """The node as messages name it."""
        return _told(self.op, self.line)

    def _op(self, op: str, /, *others: Node | None, name: str | None = None, **attrs: Any) -> Node:
        return self.graph.op(op, self, *others, name=name, **attrs)

    def _operand(self, other: Node | Array) -> Node:
        return other if isinstance(other, Node) else self.graph.constant(other)

    def _compared(self, other: Node | float | Array) -> Node:
        return self._operand(np.asarray(other) if isinstance(other, int | float) else other)

    def __neg__(self) -> Node:
        return self.neg()

    def __abs__(self) -> Node:
        return self.abs()

    def __add__(self, other: Node | float | Array) -> Node:
        return self.add_scalar(other) if isinstance(other, int | float) else self.add(self._operand(other))

    def __radd__(self, other: float | Array) -> Node:
        return self.add_scalar(other) if isinstance(other, int | float) else self._operand(other).add(self)

    def __sub__(self, other: Node | float | Array) -> Node:
        return self.sub_scalar(other) if isinstance(other, int | float) else self.sub(self._operand(other))

    def __rsub__(self, other: float | Array) -> Node:
        return self.neg().add_scalar(other) if isinstance(other, int | float) else self._operand(other).sub(self)

    def __mul__(self, other: Node | float | Array) -> Node:
        return self.mul_scalar(other) if isinstance(other, int | float) else self.mul(self._operand(other))

    def __rmul__(self, other: float | Array) -> Node:
        return self.mul_scalar(other) if isinstance(other, int | float) else self._operand(other).mul(self)

    def __truediv__(self, other: Node | float | Array) -> Node:
        return self.div_scalar(other) if isinstance(other, int | float) else self.div(self._operand(other))

    def __rtruediv__(self, other: float | Array) -> Node:
        if not isinstance(other, int | float):
            return self._operand(other).div(self)
        return self.reciprocal() if other == 1 else self.reciprocal().mul_scalar(other)

    def __pow__(self, other: Node | float | Array) -> Node:
        return self.pow_scalar(other) if isinstance(other, int | float) else self.pow(self._operand(other))

    def __rpow__(self, other: Array) -> Node:
        return self._operand(other).pow(self)

    def __mod__(self, other: Node | Array) -> Node:
        return self.mod(self._operand(other))

    def __rmod__(self, other: Array) -> Node:
        return self._operand(other).mod(self)

    def __matmul__(self, other: Node | Array) -> Node:
        return self.matmul(self._operand(other))

    def __rmatmul__(self, other: Array) -> Node:
        return self._operand(other).matmul(self)

    def __lt__(self, other: Node | float | Array) -> Node:  # type: ignore[misc] # arrays leave it to nodes
        return self.less(self._compared(other))

    def __le__(self, other: Node | float | Array) -> Node:  # type: ignore[misc] # arrays leave it to nodes
        return self.less_equal(self._compared(other))

    def __gt__(self, other: Node | float | Array) -> Node:  # type: ignore[misc] # arrays leave it to nodes
        return self.greater(self._compared(other))

    def __ge__(self, other: Node | float | Array) -> Node:  # type: ignore[misc] # arrays leave it to nodes
        return self.greater_equal(self._compared(other))


@dataclass(frozen=True, eq=False, repr=False)
class GraphFunction:
    """A function of a graph: the handle under which ops run it. It sees nothing of the graph but what is passed to it.

    `nodes` are its own, under ids of its own: those of `parameters` in the order in which it is given operands, and
    `outputs` in that of its results.
    """

    graph: Graph
    index: int
    nodes: Graph
    outputs: tuple[Node, ...]
    name: str | None

    def __repr__(self) -> str:
        called = f" {self.name!r}" if self.name else ""
        return f"<function {self.index}{called} of {len(self.parameters)}, with {len(self.outputs)} results>"

    @property
    def parameters(self) -> tuple[Node, ...]:
        """Its inputs."""
        return tuple(node for node in self.nodes if node.op == "input")


#: what writes the nodes of a function, and gives back its outputs
Body = Callable[["Graph"], Node | Sequence[Node]]
#: a node by its handle, by its name, or by its id, which is its place in the list of nodes
NodeLike = Node | str | int


class Graph(GraphOps):
    """A computation graph. What has operands is written as methods and operators of nodes, all else as methods here.

    `opset` is the version of the set of ops. A graph that is told none says by itself which it needs, where that is not
    the first. `functions` are what its ops may run; `outer` is the graph that it is a function of, if it is one.
    """

    def __init__(self, opset: int | None = None, outer: Graph | None = None) -> None:
        self.opset = opset
        self.outer = outer
        self.functions: list[GraphFunction] = []
        self._nodes: list[Node] = []
        self._by_name: dict[str, list[Node]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __repr__(self) -> str:
        return f"<graph of {len(self)} nodes>"

    def copy(self) -> Graph:
        """Another graph of the same nodes under the same ids, to be gone on with."""
        made = Graph(self.opset)
        made.functions = [replace(function, graph=made) for function in self.functions]
        made._nodes = [replace(node, graph=made) for node in self._nodes]
        for node in made._nodes:
            if node.name:
                made._by_name.setdefault(node.name, []).append(node)
        return made

    def function(self, body: Body, name: str | None = None) -> GraphFunction:
        """A function for ops of this graph, which may be written as a decorator.

        `body` is given a graph of the function's own, whose inputs are the parameters, and gives back a node or
        several: the outputs. Nodes of other graphs are none of it. Functions that it makes itself are made before it.

        Raises InputError for outputs that are no nodes of the function.
        """
        if self.outer is not None:
            return self.outer.function(body, name)
        inner = type(self)(outer=self)
        written = body(inner)
        outputs = (written,) if isinstance(written, Node) else tuple(written)
        for i, output in enumerate(outputs):
            _check_output(output, inner, i, _line_of_the_caller())
        return self._append_function(inner, outputs, name)

    @property
    def owner(self) -> Graph:
        """The graph that has the functions: the one around, where this is of a function."""
        return self if self.outer is None else self.outer

    def _append_function(self, nodes: Graph, outputs: Sequence[Node], name: str | None) -> GraphFunction:
        made = GraphFunction(self, len(self.functions), nodes, tuple(outputs), name)
        self.functions.append(made)
        return made

    def op(self, op: str, /, *operands: Node | None, name: str | None = None, **attrs: Any) -> Node:
        """Any op by its name, also one that is newer than this client. What is None is not stated.

        Raises InputError for an operand of another graph, and for what an attribute cannot be.
        """
        line = _line_of_the_caller()
        return self._append(op, operands, attrs, name, line)

    def _append(
        self, op: str, operands: Sequence[Node | None], attrs: Mapping[str, Any], name: str | None, line: Line
    ) -> Node:
        stated_operands = operands[: len(operands) - _absent_at_the_end(operands)]
        ids = tuple(self._own(operand, op, line, i) for i, operand in enumerate(stated_operands))
        stated = {key: self._stated(value, key, op, line) for key, value in attrs.items() if value is not None}
        node = Node(self, len(self), op, ids, stated, name, line)
        self._nodes.append(node)
        if name:
            self._by_name.setdefault(name, []).append(node)
        return node

    def _own(self, operand: object, op: str, line: Line, i: int) -> int:
        if not isinstance(operand, Node):
            raise InputError(f"{_told(op, line)} has {type(operand).__name__} as operand {i}, where a node is expected")
        if operand.graph is not self:
            raise InputError(f"{_told(op, line)} has {operand.told} as operand {i}, which is a node of another graph")
        return operand.id

    def _stated(self, value: Any, name: str, op: str, line: Line) -> Any:
        if not isinstance(value, GraphFunction):
            return _sent(value, name, op, line)
        if value.graph is not self.owner:
            raise InputError(f"{_told(op, line)}, attribute {name}: {value!r} is a function of another graph")
        return value.index

    def find(self, node: NodeLike) -> Node:
        """A node of this graph. Raises InputError where there is none, or there are several of the name."""
        if isinstance(node, Node):
            if node.graph is not self:
                raise InputError(f"{node.told} is a node of another graph")
            return node
        if isinstance(node, str):
            return self._named(node)
        place: object = node  # the keys of feeds may be anything
        if not isinstance(place, int) or not 0 <= place < len(self):
            raise InputError(f"there is no node {place} in a graph of {len(self)}")
        return self._nodes[place]

    def _named(self, name: str) -> Node:
        found = self._by_name.get(name, ())
        if not found:
            raise InputError(f"no node of the graph is called {name!r}")
        if len(found) > 1:
            raise InputError(f"{len(found)} nodes are called {name!r}, {found[0].told} and {found[1].told} among them")
        return found[0]

    @classmethod
    def from_wire(cls, graph: Mapping[str, Any], outer: Graph | None = None) -> Graph:
        """The graph that an answer holds, or a function of that one, whatever its ops are."""
        made, line = cls(graph.get("opset"), outer), Line("the server", 0)
        for function in graph.get("functions", ()):
            inner = cls.from_wire(function, made)
            made._append_function(inner, [inner.find(i) for i in function["outputs"]], function.get("name"))
        for node in graph["nodes"]:
            operands = [made.find(i) for i in node.get("operands", ())]
            attrs = {name: _received(value) for name, value in node.get("attrs", {}).items()}
            made._append(node["op"], operands, attrs, node.get("name"), line)
        return made


def _check_output(output: object, graph: Graph, i: int, line: Line) -> None:
    if not isinstance(output, Node):
        got = type(output).__name__
        raise InputError(f"the function ({line}) gives back {got} as output {i}, where a node is expected")
    if output.graph is not graph:
        raise InputError(
            f"the function ({line}) gives back {output.told} as output {i}, which is not a node of its own"
        )


def _sent(value: Any, name: str, op: str, line: Line) -> Any:
    """An attribute as JSON has it, but for tensors, which travel in several forms."""
    try:
        return _constant(value) if name in TENSOR_ATTRIBUTES else _plain(value)
    except InputError as error:
        raise InputError(f"{_told(op, line)}, attribute {name}: {error}") from None


def _constant(value: ArrayLike) -> Array:
    """A copy: what happens to the array later is none of the graph's."""
    array = as_array(value).copy()
    array.flags.writeable = False
    return array


def _plain(value: Any) -> Any:
    match value:
        case np.ndarray():
            return _constant(value)
        case np.generic():
            return _plain(value.item())
        case type() | np.dtype():
            return dtype_name(value)
        case float() if not math.isfinite(value):
            raise InputError(f"{value} is no number of JSON")
        case list() | tuple():
            return [_plain(each) for each in value]
        case bool() | int() | float() | str() | dict():
            return value
    raise InputError(f"{type(value).__name__} is nothing that an attribute can be")


def _received(value: Any) -> Any:
    return from_json(value) if isinstance(value, dict) and {"dtype", "shape"} <= value.keys() else value


def _absent_at_the_end(operands: Sequence[Node | None]) -> int:
    """How many operands in a row, from the last one on, are None; one with others behind it cannot be left out."""
    return sum(1 for _ in takewhile(lambda operand: operand is None, reversed(operands)))


def _told(op: str, line: Line) -> str:
    return f"{op} ({line})"


def _line_of_the_caller() -> Line:
    """Where the program calls into this package."""
    frame = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller's line
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)
