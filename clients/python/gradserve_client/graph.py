"""Graphs as programs write them: every method appends a node and returns it."""

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
    """The line of the program that wrote a node."""

    file: str
    number: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.number}" if self.number else self.file


@dataclass(frozen=True, eq=False, repr=False)
class Node(NodeOps):
    """A node of a graph. It is used as an operand, as a key of feeds, and as a key of results.

    Arithmetic operators and comparisons append nodes, except `==`, which tests whether two node objects are the same.
    In arithmetic, Python numbers take the dtype of the node. In comparisons they are float64 or int64, so that they are
    compared exactly.
    """

    graph: Graph
    id: int
    op: str
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    name: str | None
    line: Line

    # Makes NumPy arrays defer to the operators of this class.
    __array_ufunc__ = None

    def __repr__(self) -> str:
        label = f" {self.name!r}" if self.name else ""
        return f"<node {self.id}: {self.op}{label}>"

    def __bool__(self) -> bool:
        raise InputError(f"{self.told} has no value until the graph runs; choose with where() or cond() in the graph")

    @property
    def told(self) -> str:
        """The node as error messages name it: its op and its line."""
        return _describe(self.op, self.line)

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
    """A function of a graph, passed to the ops that run it. It sees only the operands that the op passes.

    `nodes` is its own graph, with its own ids. `parameters` are its inputs in the order of the operands; `outputs` are
    in the order of the results.
    """

    graph: Graph
    index: int
    nodes: Graph
    outputs: tuple[Node, ...]
    name: str | None

    def __repr__(self) -> str:
        label = f" {self.name!r}" if self.name else ""
        return f"<function {self.index}{label} of {len(self.parameters)}, with {len(self.outputs)} results>"

    @property
    def parameters(self) -> tuple[Node, ...]:
        """The inputs of the function."""
        return tuple(node for node in self.nodes if node.op == "input")


#: a callback that writes the nodes of a function and returns its outputs
Body = Callable[["Graph"], Node | Sequence[Node]]
#: a node object, the name of a node, or its id: its position in the list of nodes
NodeLike = Node | str | int


class Graph(GraphOps):
    """A computation graph. Ops with operands are methods and operators of nodes; ops without operands are methods here.

    `opset` is the version of the op set. By default the graph declares the lowest opset that has everything it uses.
    `functions` are the functions that its ops may run. `outer` is the enclosing graph if this is the graph of a
    function.
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
        """Return a new graph with the same nodes under the same ids, to append to."""
        copy = Graph(self.opset)
        copy.functions = [replace(function, graph=copy) for function in self.functions]
        copy._nodes = [replace(node, graph=copy) for node in self._nodes]
        for node in copy._nodes:
            if node.name:
                copy._by_name.setdefault(node.name, []).append(node)
        return copy

    def function(self, body: Body, name: str | None = None) -> GraphFunction:
        """Append a function for ops of this graph to run. Can be used as a decorator.

        `body` receives the function's own graph, whose inputs become the parameters, and returns one node or several:
        the outputs. It cannot use nodes of other graphs. Functions that it defines itself are appended before it.

        Raises InputError if an output is not a node of the function.
        """
        if self.outer is not None:
            return self.outer.function(body, name)
        inner = type(self)(outer=self)
        result = body(inner)
        outputs = (result,) if isinstance(result, Node) else tuple(result)
        for i, output in enumerate(outputs):
            _check_output(output, inner, i, _caller_line())
        return self._append_function(inner, outputs, name)

    @property
    def owner(self) -> Graph:
        """The graph that holds the functions: the outermost graph."""
        return self if self.outer is None else self.outer

    def _append_function(self, nodes: Graph, outputs: Sequence[Node], name: str | None) -> GraphFunction:
        function = GraphFunction(self, len(self.functions), nodes, tuple(outputs), name)
        self.functions.append(function)
        return function

    def op(self, op: str, /, *operands: Node | None, name: str | None = None, **attrs: Any) -> Node:
        """Append any op by name, even one that is newer than this client. Arguments that are None are omitted.

        Raises InputError for an operand that belongs to another graph, and for an invalid attribute value.
        """
        line = _caller_line()
        return self._append(op, operands, attrs, name, line)

    def _append(
        self, op: str, operands: Sequence[Node | None], attrs: Mapping[str, Any], name: str | None, line: Line
    ) -> Node:
        given_operands = operands[: len(operands) - _count_trailing_absent(operands)]
        ids = tuple(self._operand_id(operand, op, line, i) for i, operand in enumerate(given_operands))
        wire_attrs = {key: self._attribute(value, key, op, line) for key, value in attrs.items() if value is not None}
        node = Node(self, len(self), op, ids, wire_attrs, name, line)
        self._nodes.append(node)
        if name:
            self._by_name.setdefault(name, []).append(node)
        return node

    def _operand_id(self, operand: object, op: str, line: Line, i: int) -> int:
        if not isinstance(operand, Node):
            raise InputError(f"{_describe(op, line)}: operand {i} must be a node, not {type(operand).__name__}")
        if operand.graph is not self:
            raise InputError(f"{_describe(op, line)}: operand {i}, {operand.told}, belongs to another graph")
        return operand.id

    def _attribute(self, value: Any, name: str, op: str, line: Line) -> Any:
        if not isinstance(value, GraphFunction):
            return _wire_attribute(value, name, op, line)
        if value.graph is not self.owner:
            raise InputError(f"{_describe(op, line)}, attribute {name}: {value!r} belongs to another graph")
        return value.index

    def find(self, node: NodeLike) -> Node:
        """Return a node of this graph. Raises InputError if there is no such node, or if its name is ambiguous."""
        if isinstance(node, Node):
            if node.graph is not self:
                raise InputError(f"{node.told} belongs to another graph")
            return node
        if isinstance(node, str):
            return self._named(node)
        node_id: object = node  # the keys of feeds may be anything
        if not isinstance(node_id, int) or not 0 <= node_id < len(self):
            raise InputError(f"the graph has no node {node_id} (number of nodes: {len(self)})")
        return self._nodes[node_id]

    def _named(self, name: str) -> Node:
        matches = self._by_name.get(name, ())
        if not matches:
            raise InputError(f"the graph has no node named {name!r}")
        if len(matches) > 1:
            raise InputError(
                f"{len(matches)} nodes are named {name!r}, among them {matches[0].told} and {matches[1].told}"
            )
        return matches[0]

    @classmethod
    def from_wire(cls, graph: Mapping[str, Any], outer: Graph | None = None) -> Graph:
        """Read a graph from a response, or a function of the graph `outer`. Unknown ops are accepted."""
        result, line = cls(graph.get("opset"), outer), Line("the server", 0)
        for function in graph.get("functions", ()):
            inner = cls.from_wire(function, result)
            result._append_function(inner, [inner.find(i) for i in function["outputs"]], function.get("name"))
        for node in graph["nodes"]:
            operands = [result.find(i) for i in node.get("operands", ())]
            attrs = {name: _attribute_from_wire(value) for name, value in node.get("attrs", {}).items()}
            result._append(node["op"], operands, attrs, node.get("name"), line)
        return result


def _check_output(output: object, graph: Graph, i: int, line: Line) -> None:
    if not isinstance(output, Node):
        type_name = type(output).__name__
        raise InputError(f"the function ({line}) must return nodes, but returns {type_name} as output {i}")
    if output.graph is not graph:
        raise InputError(
            f"the function ({line}) returns {output.told} as output {i}, which is not one of its own nodes"
        )


def _wire_attribute(value: Any, name: str, op: str, line: Line) -> Any:
    """Convert an attribute to its form in JSON. Tensors stay arrays, since they have several forms."""
    try:
        return _constant(value) if name in TENSOR_ATTRIBUTES else _plain(value)
    except InputError as error:
        raise InputError(f"{_describe(op, line)}, attribute {name}: {error}") from None


def _constant(value: ArrayLike) -> Array:
    """Return a read-only copy, so that later changes of the array do not change the graph."""
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
            raise InputError(f"JSON cannot represent {value}")
        case list() | tuple():
            return [_plain(item) for item in value]
        case bool() | int() | float() | str() | dict():
            return value
    raise InputError(f"{type(value).__name__} is not a valid attribute type")


def _attribute_from_wire(value: Any) -> Any:
    return from_json(value) if isinstance(value, dict) and {"dtype", "shape"} <= value.keys() else value


def _count_trailing_absent(operands: Sequence[Node | None]) -> int:
    """Count the operands that are None at the end: only those can be omitted without shifting other operands."""
    return sum(1 for _ in takewhile(lambda operand: operand is None, reversed(operands)))


def _describe(op: str, line: Line) -> str:
    return f"{op} ({line})"


def _caller_line() -> Line:
    """Return the line of the program that calls into this package."""
    frame = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller's line
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)
