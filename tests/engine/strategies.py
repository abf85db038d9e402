"""Random programs for property tests: well-typed, smooth, with bounded values, and with gradients in the middle.

Every op that is drawn keeps values of order one (a growing op is followed by a squashing one), so that central
differences of the whole program are a reference for its gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from engine import LATEST, Builder, Program, Statement, TensorType, Value, registry
from engine.ir.attributes import bind
from engine.ir.program import NO_BUDGET, Function, FunctionTyping

Array = np.ndarray[Any, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
FLOAT64 = np.dtype("float64")
EXTENTS = st.integers(1, 3)


@dataclass
class Sketch:
    """A program being drawn. `nodes` are the statements, `results` those that later ops may read."""

    nodes: list[Statement] = field(default_factory=list)
    feeds: dict[int, Array] = field(default_factory=dict)
    results: list[int] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    _builder: Builder = field(default_factory=lambda: Builder(registry()))
    _values: list[Value] = field(default_factory=list)

    def leaf(self, array: Array) -> int:
        """Add a parameter, fed with `array`."""
        self.nodes.append(Statement(registry().ops["parameter"]))
        self._values.append(self._builder.leaf(TensorType.of(array), len(self._values), "parameter"))
        self.feeds[len(self.nodes) - 1] = array
        self.results.append(len(self.nodes) - 1)
        return len(self.nodes) - 1

    def add(self, op: str, *operands: int, **attrs: Any) -> int:
        """Add a node; the engine infers its shape."""
        definition = registry().ops[op]
        self.nodes.append(Statement(definition, operands, attrs))
        values = [self._values[i] for i in operands]
        bound = FunctionTyping(self.functions, NO_BUDGET).bound(definition, bind(definition.attrs, attrs))
        self._values.append(self._builder.emit(definition, values, bound))
        return len(self.nodes) - 1

    def shape(self, node: int) -> tuple[int, ...]:
        """Return the node's shape."""
        return self._values[node].shape

    def singles(self, above: int | None = None) -> list[int]:
        """Return the float nodes with one output: all, or those that `above` depends on."""
        nodes = range(len(self.nodes)) if above is None else self.program().needed([above])
        return [i for i in nodes if not self.nodes[i].op.several and self._values[i].type.is_differentiable]

    def program(self) -> Program:
        """Return the program drawn so far."""
        return Program(registry(), self.nodes, opset=LATEST, functions=self.functions)

    def function(self, nodes: Sequence[Statement]) -> int:
        """Add a function with one result and return its index."""
        self.functions.append(Function(registry(), nodes, [len(nodes) - 1], functions=tuple(self.functions)))
        return len(self.functions) - 1

    @property
    def types(self) -> dict[int, TensorType]:
        """Types of the feeds."""
        return {node: TensorType.of(array) for node, array in self.feeds.items()}

    @property
    def leaves(self) -> list[int]:
        """Nodes that are fed."""
        return list(self.feeds)

    def __repr__(self) -> str:
        lines = (
            f"  {i} = {s.op.name}{list(s.operands)} {dict(s.attrs) or ''} {list(self.shape(i))}"
            for i, s in enumerate(self.nodes)
        )
        return "Sketch(\n" + "\n".join(lines) + "\n)"


Move = Callable[[Draw, Sketch, int], int]


def unary(op: str, **attrs: Any) -> Move:
    return lambda draw, sketch, x: sketch.add(op, x, **attrs)


def scaled(op: str, factor: float) -> Move:
    """Return a move that adds a growing op and scales its result back."""
    return lambda draw, sketch, x: sketch.add("mul_scalar", sketch.add(op, x), scalar=factor)


def shifted(draw: Draw, sketch: Sketch, x: int) -> int:
    return sketch.add("sin", sketch.add("add_scalar", x, scalar=draw(st.sampled_from([-1.0, 0.5, 2.0]))))


def broadcastable(sketch: Sketch, x: int) -> list[int]:
    def fits(a: Sequence[int], b: Sequence[int]) -> bool:
        return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))

    return [i for i in sketch.results if fits(sketch.shape(i), sketch.shape(x))]


def binary(op: str) -> Move:
    """Return a move that combines two results that broadcast, in either order."""

    def move(draw: Draw, sketch: Sketch, x: int) -> int:
        pair = [x, draw(st.sampled_from(broadcastable(sketch, x)))]
        return sketch.add("tanh", sketch.add(op, *draw(st.permutations(pair))))

    return move


def quotient(draw: Draw, sketch: Sketch, x: int) -> int:
    below = sketch.add("add_scalar", sketch.add("square", draw(st.sampled_from(broadcastable(sketch, x)))), scalar=1.5)
    return sketch.add("div", x, below)


def with_uniform_tensor(draw: Draw, sketch: Sketch, x: int) -> int:
    """Combine x with a tensor of equal entries created on the server, which passes simplify and fold."""
    lead = [] if draw(st.booleans()) or len(sketch.shape(x)) > 2 else [draw(EXTENTS)]
    shape = draw(st.sampled_from([[], [*sketch.shape(x)], [*lead, *sketch.shape(x)]]))
    number = sketch.add("full", shape=shape, fill=draw(st.sampled_from([0.0, 1.0, -1.0, 0.5])))
    if draw(st.booleans()):
        number = sketch.add("cos", number)
    op, pair = draw(st.sampled_from(["add", "sub", "mul"])), draw(st.permutations([x, number]))
    return sketch.add("tanh", sketch.add(op, *pair))


def times_arange(_: Draw, sketch: Sketch, x: int, *__: int) -> int:
    """Multiply x by 0, 1, 2, … along its last axis."""
    count = sketch.add("arange", stop=float(sketch.shape(x)[-1]), dtype="float64")
    return sketch.add("tanh", sketch.add("mul", x, count))


def reduction(op: str) -> Move:
    def move(draw: Draw, sketch: Sketch, x: int) -> int:
        rank = len(sketch.shape(x))
        axes = draw(st.lists(st.integers(-rank, rank - 1), max_size=2, unique_by=lambda a: a % rank)) if rank else []
        return sketch.add("tanh", sketch.add(op, x, axes=axes, keepdims=draw(st.booleans())))

    return move


def transposed(draw: Draw, sketch: Sketch, x: int) -> int:
    axes = draw(st.permutations(range(len(sketch.shape(x)))))
    return sketch.add("transpose", x, axes=list(axes)) if axes else x


def reshaped(draw: Draw, sketch: Sketch, x: int) -> int:
    return sketch.add("reshape", x, shape=draw(st.sampled_from([[-1], [1, -1], list(reversed(sketch.shape(x)))])))


def broadcast(draw: Draw, sketch: Sketch, x: int) -> int:
    shape = [draw(EXTENTS) if e == 1 else e for e in sketch.shape(x)]
    lead = [draw(EXTENTS)] if len(shape) < 3 else []
    return sketch.add("broadcast_to", x, shape=[*lead, *shape])


def along_axis(act: Callable[[Draw, Sketch, int, int, int], int]) -> Move:
    """Return a move along one axis: act(draw, sketch, x, axis, extent); a 0-d tensor is returned unchanged."""

    def move(draw: Draw, sketch: Sketch, x: int) -> int:
        shape = sketch.shape(x)
        if not shape:
            return x
        axis = draw(st.integers(0, len(shape) - 1))
        return act(draw, sketch, x, axis, shape[axis])

    return move


def gathered(draw: Draw, sketch: Sketch, x: int, axis: int, extent: int) -> int:
    indices = draw(st.lists(st.integers(0, extent - 1), min_size=1, max_size=4))
    return sketch.add("gather", x, axis=axis, indices=indices)


def joined(_: Draw, sketch: Sketch, x: int, axis: int, extent: int) -> int:
    return sketch.add("cat", x, x, axis=axis) if extent < 3 else x


def divided(draw: Draw, sketch: Sketch, x: int, axis: int, extent: int) -> int:
    """Split x in two and read one or both parts; an unread part counts as zero."""
    if extent < 2:
        return x
    parts = sketch.add("split", x, sizes=[1, extent - 1], axis=axis)
    first = sketch.add("get_output", parts, index=draw(st.integers(0, 1)))
    if extent != 2 or draw(st.booleans()):
        return first
    return sketch.add("tanh", sketch.add("mul", first, sketch.add("get_output", parts, index=1)))


def product(_: Draw, sketch: Sketch, x: int) -> int:
    """Return x @ x'ᵀ for a matrix, x · x for a vector."""
    rank = len(sketch.shape(x))
    if rank == 0:
        return x
    other = sketch.add("transpose", x) if rank > 1 else x
    return sketch.add("tanh", sketch.add("matmul", x, other))


def gradient(draw: Draw, sketch: Sketch, y: int) -> int:
    """Add the gradient of a result with respect to a node it depends on, or any node; seeded or not; and use it."""
    x = draw(st.sampled_from(sketch.singles(draw(st.sampled_from([y, y, y, None])))))
    seed = [i for i in sketch.results if sketch.shape(i) == sketch.shape(y)]
    operands = (y, x, draw(st.sampled_from(seed))) if seed and draw(st.booleans()) else (y, x)
    return sketch.add("tanh", sketch.add("grad", *operands))


def small_body(draw: Draw, inputs: int) -> list[Statement]:
    """Return a function of a few tensors of one shape whose result has that shape."""
    ops = registry().ops
    nodes = [Statement(ops["input"]) for _ in range(inputs)]
    for _ in range(draw(st.integers(1, 3))):
        x, y = len(nodes) - 1, draw(st.integers(0, len(nodes) - 1))
        op = draw(st.sampled_from(["sin", "add", "sub", "mul"]))
        nodes.append(Statement(ops[op], (x,) if op == "sin" else (x, y)))
    return [*nodes, Statement(ops["tanh"], (len(nodes) - 1,))]


def same_shaped(draw: Draw, sketch: Sketch, x: int) -> int:
    """Return a result of the same shape, possibly x."""
    return int(draw(st.sampled_from([i for i in sketch.results if sketch.shape(i) == sketch.shape(x)])))


def first_of(sketch: Sketch, op: str, *operands: int, **attrs: Any) -> int:
    """Return the first result of an op with several results."""
    return sketch.add("get_output", sketch.add(op, *operands, **attrs), index=0)


def scanned(draw: Draw, sketch: Sketch, x: int) -> int:
    length, reverse = draw(st.integers(0, 3)), draw(st.booleans())
    body, const = sketch.function(small_body(draw, 2)), same_shaped(draw, sketch, x)
    return first_of(sketch, "scan", const, x, body=body, carries=1, length=length, reverse=reverse)


def mapped(draw: Draw, sketch: Sketch, x: int, *_: int) -> int:
    at_once = draw(st.sampled_from([{}, {"at_once": 1}, {"at_once": 2}]))
    body, other = sketch.function(small_body(draw, 2)), same_shaped(draw, sketch, x)
    return first_of(sketch, "map", other, x, body=body, sequences=2, **at_once)


def called(draw: Draw, sketch: Sketch, x: int) -> int:
    body, other = sketch.function(small_body(draw, 2)), same_shaped(draw, sketch, x)
    return first_of(sketch, "call", other, x, body=body, recompute=draw(st.booleans()))


def chosen(draw: Draw, sketch: Sketch, x: int) -> int:
    flag = sketch.add("constant", value=np.array(draw(st.booleans())))
    then, otherwise = (sketch.function(small_body(draw, 1)) for _ in range(2))
    return first_of(sketch, "cond", flag, x, then=then, otherwise=otherwise)


def until(draw: Draw, sketch: Sketch, x: int) -> int:
    """Add a `while` that ends at its bound, or at once."""
    ops = registry().ops
    flag = Statement(ops["constant"], (), {"value": np.array(draw(st.booleans()))})
    condition = sketch.function([Statement(ops["input"]), flag])
    body = sketch.function(small_body(draw, 1))
    bound = draw(st.integers(0, 3))
    return first_of(sketch, "while", x, condition=condition, body=body, carries=1, max_steps=bound)


#: ops that run functions; a plan has kernels for them once their bodies are planned
RUNNING: list[tuple[str, Move]] = [
    ("scan", scanned),
    ("map", along_axis(mapped)),
    ("call", called),
    ("cond", chosen),
    ("while", until),
]

# Each move with the op it needs, so that the same strategies serve an opset that lacks some ops.
MOVES: list[tuple[str, Move]] = [
    ("sin", unary("sin")),
    ("cos", unary("cos")),
    ("tanh", unary("tanh")),
    ("neg", unary("neg")),
    ("square", unary("square")),
    ("sigmoid", unary("sigmoid")),
    ("softplus", scaled("softplus", 0.5)),
    ("exp", scaled("exp", 1 / math.e)),
    ("gelu", unary("gelu")),
    ("softmax", along_axis(lambda draw, sketch, x, axis, extent: sketch.add("softmax", x, axis=axis))),
    ("cumsum", along_axis(lambda draw, s, x, axis, extent: s.add("tanh", s.add("cumsum", x, axis=axis)))),
    ("flip", along_axis(lambda draw, sketch, x, axis, extent: sketch.add("flip", x, axes=[axis]))),
    ("roll", along_axis(lambda draw, sketch, x, axis, extent: sketch.add("roll", x, shifts=[1], axes=[axis]))),
    ("add_scalar", shifted),
    ("full", with_uniform_tensor),
    ("arange", along_axis(times_arange)),
    ("add", binary("add")),
    ("sub", binary("sub")),
    ("mul", binary("mul")),
    ("logaddexp", binary("logaddexp")),
    ("div", quotient),
    ("sum", reduction("sum")),
    ("mean", reduction("mean")),
    ("logsumexp", reduction("logsumexp")),
    ("prod", reduction("prod")),
    ("var", reduction("var")),
    ("transpose", transposed),
    ("reshape", reshaped),
    ("broadcast_to", broadcast),
    ("gather", along_axis(gathered)),
    ("cat", along_axis(joined)),
    ("split", along_axis(divided)),
    ("matmul", product),
]


@st.composite
def sketches(draw: Draw, *, gradients: bool = True, functions: bool = False, largest: int = 9) -> Sketch:
    """Draw a program of up to `largest` moves on one to three parameters; its last node is float."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sketch = Sketch()
    for _ in range(draw(st.integers(1, 3))):
        sketch.leaf(np.asarray(rng.uniform(-1, 1, draw(st.lists(EXTENTS, max_size=3)))))
    available = [(op, move) for op, move in MOVES if op in registry().ops]
    available += [("grad", gradient)] * (4 if gradients else 0)
    available += RUNNING * (8 if functions else 0)
    for _ in range(draw(st.integers(1, largest))):
        _, move = draw(st.sampled_from(available))
        new = move(draw, sketch, draw(st.sampled_from(sketch.results)))
        if new not in sketch.results:
            sketch.results.append(new)
    return sketch


def copied(nodes: Sequence[Statement], which: int, moved: Sequence[tuple[int, int]]) -> list[Statement]:
    """Return `nodes` with a second `which` right behind it; `moved` lists (user, position) pairs that read the copy."""

    def place(node: int) -> int:
        return node + (node > which)

    renumbered = []
    for user, s in enumerate(nodes):
        operands = tuple(
            which + 1 if (user, position) in moved else place(operand) for position, operand in enumerate(s.operands)
        )
        renumbered.append(Statement(s.op, operands, s.attrs, s.name))
    return [*renumbered[: which + 1], renumbered[which], *renumbered[which + 1 :]]
