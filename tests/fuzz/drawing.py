"""Random graphs and functions under construction: wire nodes beside engine values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from engine import Builder, Limits, OverBudget, Statement, TensorType, Value, registry
from engine.ir.attributes import bind
from engine.ir.op import Definition
from engine.ir.program import BodyBudget, Function, FunctionTyping
from engine.ir.sample import Operand
from engine.ir.tensor_type import real_dtype
from service.api.tensors import encode
from tests.fuzz.values import Array, Mood, Random, choice, numbers

#: most elements of a tensor, and of a whole graph
MAX_SIZE: Final = 40_000
MAX_TOTAL_SIZE: Final = 300_000
#: limits of a request, with its derivatives
LIMITS: Final = Limits(nodes=3_000, bytes=1 << 26, flops=100_000_000)


class Mark(NamedTuple):
    """A position in a drawing, to return to."""

    nodes: int
    elements: int
    functions: int


@dataclass
class Functions:
    """The functions of a graph, in the engine's form and in the wire form."""

    known: list[Function] = field(default_factory=list)
    stated: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Drawing:
    """A graph under construction: wire nodes, engine values, and the feeds of leaves.

    Or a function of it, at a `depth` of one or more, with inputs for its operands. Other leaves that are drawn become
    inputs as well, in front of the others. A `closed` function has no such leaves.
    """

    rng: Random
    dtype: str
    mood: Mood
    most: int
    functions: Functions = field(default_factory=Functions)
    #: the share of moves that run functions
    running: float = 0.0
    depth: int = 0
    closed: bool = False
    nodes: list[dict[str, Any]] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    feeds: dict[int, Array] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)
    builder: Builder = field(default_factory=lambda: Builder(registry(), LIMITS))
    elements: int = 0

    def add(self, name: str, operands: Sequence[int], attrs: Mapping[str, Any]) -> int:
        """Add a node, if its op accepts the operands and attributes. Raises EngineError."""
        op, values = registry().ops[name], [self.values[i] for i in operands]
        typing = FunctionTyping(self.functions.known, BodyBudget(LIMITS))
        bound = typing.bound(op, bind(op.attrs, attrs))
        op.check_operands([operand_value.type for operand_value in values])
        value = self.builder.emit(op, values, bound)
        self._admit(sum(type.size for type in value.node.types))
        stated = {"op": name, "operands": list(operands), "attrs": {k: wire_attribute(v) for k, v in attrs.items()}}
        return self._put(value, Statement(op, tuple(operands), dict(attrs)), stated)

    def leaf(self, array: Array) -> int:
        """Add a fed node; in a function, sometimes a constant."""
        if self.closed or (self.depth and self.rng.random() < 0.5):
            return self.add("constant", [], {"value": array})
        is_parameter = not self.depth and array.dtype.kind in "fc" and self.rng.random() < 0.7
        node = self.input(TensorType.of(array), "parameter" if is_parameter else "input")
        self.feeds[node] = array
        return node

    def input(self, type: TensorType, name: str = "input") -> int:
        """Add a leaf; without a feed it is an operand of a function."""
        self._admit(type.size)
        return self._put(self.builder.leaf(type, len(self.values)), Statement(registry().ops[name]), {"op": name})

    def drawn(self, operand: Operand, dtype: str | None = None, of: Definition | None = None) -> int:
        """Add a leaf of random numbers for an operand, real ones if the op takes no others.

        Raises EngineError if there are too many elements.
        """
        if math.prod(operand.shape) > self.most:
            raise OverBudget("the drawing has elements enough")
        chosen = np.dtype(dtype or self._dtype())
        if of is not None and chosen.kind == "c" and chosen.name not in of.dtypes:
            chosen = real_dtype(chosen)
        return self.leaf(numbers(self.rng, operand, chosen, self.mood))

    def within(self, types: Sequence[TensorType], *, closed: bool = False) -> Drawing:
        """Begin a function of operands of these types."""
        drawing = Drawing(
            self.rng, self.dtype, self.mood, self.most, self.functions, self.running / 2, self.depth + 1, closed
        )
        for type in types:
            drawing.input(type)
        return drawing

    def as_function(self, outputs: Sequence[int]) -> int:
        """Make the drawing a function of the graph, its own inputs first, and return its index."""
        order = [*self.feeds, *[i for i in range(len(self.nodes)) if i not in self.feeds]]
        place = {node: k for k, node in enumerate(order)}
        statements = [self.statements[i] for i in order]
        moved = [Statement(s.op, tuple(place[i] for i in s.operands), s.attrs) for s in statements]
        nodes = [{**self.nodes[i], "operands": list(s.operands)} for i, s in zip(order, moved, strict=True)]
        results, known = [place[i] for i in outputs], self.functions
        known.stated.append({"nodes": [_without_empty_fields(node) for node in nodes], "outputs": results})
        known.known.append(Function(registry(), moved, results, functions=tuple(known.known)))
        return len(known.known) - 1

    def mark(self) -> Mark:
        """The present position."""
        return Mark(len(self.nodes), self.elements, len(self.functions.known))

    def cut(self, mark: Mark) -> None:
        """Remove everything after a position."""
        del self.nodes[mark.nodes :], self.statements[mark.nodes :], self.values[mark.nodes :]
        del self.functions.known[mark.functions :], self.functions.stated[mark.functions :]
        self.feeds = {node: array for node, array in self.feeds.items() if node < mark.nodes}
        self.elements = mark.elements

    def singles(self) -> list[int]:
        """The nodes with one result."""
        return [i for i, s in enumerate(self.statements) if not s.op.several]

    def floats(self) -> list[int]:
        """The nodes with one result that are differentiable."""
        return [i for i in self.singles() if self.values[i].type.is_differentiable]

    def reals(self) -> list[int]:
        """The differentiable nodes that are not complex."""
        return [i for i in self.floats() if not self.values[i].type.is_complex]

    def shape(self, node: int) -> tuple[int, ...]:
        """The shape of a node."""
        return self.values[node].shape

    def _put(self, value: Value, statement: Statement, stated: Mapping[str, Any]) -> int:
        self.nodes.append(_without_empty_fields(stated))
        self.statements.append(statement)
        self.values.append(value)
        return len(self.nodes) - 1

    def _admit(self, elements: int) -> None:
        self.elements += elements
        if elements > self.most or self.elements > MAX_TOTAL_SIZE:
            self.elements -= elements
            raise OverBudget("the drawing has elements enough")

    def _dtype(self) -> str:
        others = ["float16", "float32", "float64", "int32", "int64", "int8", "uint8", "bool", "complex64"]
        return choice(self.rng, others) if self.rng.random() < 0.05 else self.dtype


def _without_empty_fields(stated: Mapping[str, Any]) -> dict[str, Any]:
    """A wire node without empty fields."""
    return {key: value for key, value in stated.items() if value not in ([], {})}


def wire_attribute(value: Any) -> Any:
    """An attribute in its wire form."""
    if isinstance(value, np.ndarray):
        return encode(value, "base64")
    if isinstance(value, np.dtype):
        return value.name
    return list(value) if isinstance(value, tuple) else value
