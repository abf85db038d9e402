"""A graph while it is drawn, and the functions of it: nodes as on the wire, beside what they are."""

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

#: elements of a tensor, and of all of a graph
MOST_OF_ONE: Final = 40_000
MOST_ELEMENTS: Final = 300_000
#: what a request may take, with its derivatives
LIMITS: Final = Limits(nodes=3_000, bytes=1 << 26, flops=100_000_000)


class Mark(NamedTuple):
    """How far a drawing had come."""

    nodes: int
    elements: int
    functions: int


@dataclass
class Functions:
    """The functions of a graph: as the engine has them, and as they travel."""

    known: list[Function] = field(default_factory=list)
    stated: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Drawing:
    """A graph while it is drawn: nodes as on the wire, what they are, and what leaves are fed.

    Or a function of it, at a `depth` of one or more, whose `inputs` are passed. What feeds its other leaves is drawn
    with it: these are inputs as well, which come before all others. One that is `closed` has none.
    """

    rng: Random
    dtype: str
    mood: Mood
    most: int
    functions: Functions = field(default_factory=Functions)
    #: of its moves, those that run functions
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
        """A node, once its op takes these operands and attributes. Raises EngineError."""
        op, values = registry().ops[name], [self.values[i] for i in operands]
        typing = FunctionTyping(self.functions.known, BodyBudget(LIMITS))
        bound = typing.bound(op, bind(op.attrs, attrs))
        op.check_operands([value.type for value in values])
        made = self.builder.emit(op, values, bound)
        self._admit(sum(type.size for type in made.node.types))
        stated = {"op": name, "operands": list(operands), "attrs": {k: spelled(v) for k, v in attrs.items()}}
        return self._put(made, Statement(op, tuple(operands), dict(attrs)), stated)

    def leaf(self, array: Array) -> int:
        """A node that is fed; now and then a constant in a function."""
        if self.closed or (self.depth and self.rng.random() < 0.5):
            return self.add("constant", [], {"value": array})
        is_parameter = not self.depth and array.dtype.kind in "fc" and self.rng.random() < 0.7
        node = self.input(TensorType.of(array), "parameter" if is_parameter else "input")
        self.feeds[node] = array
        return node

    def input(self, type: TensorType, name: str = "input") -> int:
        """A leaf: where it is not fed, what is passed to a function."""
        self._admit(type.size)
        return self._put(self.builder.leaf(type, len(self.values)), Statement(registry().ops[name]), {"op": name})

    def drawn(self, operand: Operand, dtype: str | None = None, of: Definition | None = None) -> int:
        """A leaf of numbers for such an operand, real ones where the op takes no others.

        Raises EngineError where these are too many.
        """
        if math.prod(operand.shape) > self.most:
            raise OverBudget("the drawing has elements enough")
        chosen = np.dtype(dtype or self._dtype())
        if of is not None and chosen.kind == "c" and chosen.name not in of.dtypes:
            chosen = real_dtype(chosen)
        return self.leaf(numbers(self.rng, operand, chosen, self.mood))

    def within(self, types: Sequence[TensorType], *, closed: bool = False) -> Drawing:
        """A function of such operands, to be drawn."""
        found = Drawing(
            self.rng, self.dtype, self.mood, self.most, self.functions, self.running / 2, self.depth + 1, closed
        )
        for type in types:
            found.input(type)
        return found

    def as_function(self, outputs: Sequence[int]) -> int:
        """What was drawn as a function of the graph, its own inputs in front of those that are passed; its index."""
        order = [*self.feeds, *[i for i in range(len(self.nodes)) if i not in self.feeds]]
        place = {node: k for k, node in enumerate(order)}
        statements = [self.statements[i] for i in order]
        moved = [Statement(s.op, tuple(place[i] for i in s.operands), s.attrs) for s in statements]
        nodes = [{**self.nodes[i], "operands": list(s.operands)} for i, s in zip(order, moved, strict=True)]
        results, known = [place[i] for i in outputs], self.functions
        known.stated.append({"nodes": [_short(node) for node in nodes], "outputs": results})
        known.known.append(Function(registry(), moved, results, functions=tuple(known.known)))
        return len(known.known) - 1

    def mark(self) -> Mark:
        """How far it has come."""
        return Mark(len(self.nodes), self.elements, len(self.functions.known))

    def cut(self, mark: Mark) -> None:
        """Forget all that came after."""
        del self.nodes[mark.nodes :], self.statements[mark.nodes :], self.values[mark.nodes :]
        del self.functions.known[mark.functions :], self.functions.stated[mark.functions :]
        self.feeds = {node: array for node, array in self.feeds.items() if node < mark.nodes}
        self.elements = mark.elements

    def singles(self) -> list[int]:
        """The nodes of one result."""
        return [i for i, s in enumerate(self.statements) if not s.op.several]

    def floats(self) -> list[int]:
        """Of these, those that have derivatives."""
        return [i for i in self.singles() if self.values[i].type.is_differentiable]

    def reals(self) -> list[int]:
        """Of these, those that are not complex."""
        return [i for i in self.floats() if not self.values[i].type.is_complex]

    def shape(self, node: int) -> tuple[int, ...]:
        """Its extents."""
        return self.values[node].shape

    def _put(self, made: Value, statement: Statement, stated: Mapping[str, Any]) -> int:
        self.nodes.append(_short(stated))
        self.statements.append(statement)
        self.values.append(made)
        return len(self.nodes) - 1

    def _admit(self, elements: int) -> None:
        self.elements += elements
        if elements > self.most or self.elements > MOST_ELEMENTS:
            self.elements -= elements
            raise OverBudget("the drawing has elements enough")

    def _dtype(self) -> str:
        others = ["float16", "float32", "float64", "int32", "int64", "int8", "uint8", "bool", "complex64"]
        return choice(self.rng, others) if self.rng.random() < 0.05 else self.dtype


def _short(stated: Mapping[str, Any]) -> dict[str, Any]:
    """A node without what it has none of."""
    return {key: value for key, value in stated.items() if value not in ([], {})}


def spelled(value: Any) -> Any:
    """An attribute as it travels."""
    if isinstance(value, np.ndarray):
        return encode(value, "base64")
    if isinstance(value, np.dtype):
        return value.name
    return list(value) if isinstance(value, tuple) else value
