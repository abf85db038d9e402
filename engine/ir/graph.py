"""The intermediate representation: typed nodes in a list, each referring to earlier ones only.

A `Graph` is finished and immutable. A `Node` of it has an op, the numbers of its operands, canonical attributes, the
types of its results, and its origin: the client's node that messages name. A walk in ascending order meets operands
before the nodes that read them; reverse mode walks in descending order. Transforms and passes write another graph.

A `Builder` is a graph being written. A rule handles its nodes as `Value`s, and appends one by calling a method of the
op's name, so that it reads as mathematics:

    builder = Builder(registry)
    x = builder.leaf(TensorType((2, 3), np.dtype("float64")), "x")
    graph = builder.graph([(1 - x.square()).sum(axes=(0,))])

`engine.ir.text` prints this as

    %0 = input {"feed": "x"} : float64[2,3]
    %1 = square(%0) : float64[2,3]
    %2 = neg(%1) : float64[2,3]
    %3 = add_scalar(%2) {"scalar": 1.0} : float64[2,3]
    %4 = sum(%3) {"axes": [0], "keepdims": false} : float64[3]
    return %4

Attributes and types are inferred while writing (`engine.ir.graph`), and composites append their parts. Nothing is
merged or simplified: equal nodes are two nodes, until passes merge them, when nothing refers to them by name any more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import numpy as np

from engine.ir.attributes import complete, keyed
from engine.ir.errors import EngineError
from engine.ir.kinds import is_remembered
from engine.ir.kinds.kind import LONGEST_REMEMBERED
from engine.ir.kinds.scalars import typed_number, weak_number
from engine.ir.op import NONE, Definition, Emitted, Kernel, Op, Registry, ResultTypes, View
from engine.ir.run_context import NO_DEADLINE, Deadline, Limits
from engine.ir.tensor_type import INT8, INT16, INT32, INT64, UINT8, DType, Shape, TensorType

# Inference: an op's canonical attributes on operands of given types, the types of its results, and its cost.
#
# Graphs repeat the same few nodes, within a graph and from one graph to the next. So results of rules are cached for
# the whole process, under the op, the operands' types and the attributes: an attribute's key tells types and bits
# apart (1, 1.0 and True differ), and attributes that are large are not cached. Nodes that repeat one another share
# what is cached.

_Made = TypeVar("_Made")

#: entries of one cache, unless it says otherwise: four thousand take about 4 MB
MOST_CACHED: Final = 4096
#: real operations for one of complex numbers: of a product and a sum, which LAPACK counts as 6 and 2 for 1 and 1
_COMPLEX_FLOPS: Final = 4


class Stated(dict[str, Any]):
    """Attributes that are never changed, with their cache key: `key`, None if they are not cached."""

    __slots__ = ("key",)

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        super().__init__(attrs)
        self.key = _key(attrs)


def attributes_key(attrs: Mapping[str, Any]) -> Hashable:
    """Return a key that tells attributes apart: known already, unless they are large."""
    known = attrs.key if isinstance(attrs, Stated) else None
    return keyed(attrs) if known is None else known


def is_small(attrs: Mapping[str, Any]) -> bool:
    """Whether attributes are known to be of the kinds that are remembered: a few numbers and names, and no tensors."""
    return not attrs or (isinstance(attrs, Stated) and attrs.key is not None)


class RuleCache(Generic[_Made]):
    """Cache of `make(op, types, attrs)`, by op, types and attributes.

    Threads may share it: two that miss at once call `make` twice, to the same result. Errors are not cached.
    """

    def __init__(
        self, make: Callable[[Definition, tuple[Any, ...], Mapping[str, Any]], _Made], most: int | None = None
    ) -> None:
        """Keep at most `most` entries; None: MOST_CACHED."""
        self._make = make
        self._most = most
        self.known: dict[Hashable, _Made] = {}

    def __len__(self) -> int:
        return len(self.known)

    def __call__(self, op: Definition, types: tuple[Any, ...], attrs: Mapping[str, Any]) -> _Made:
        """Return the cached result, or that of `make`. Raises what `make` raises."""
        said = attrs.key if isinstance(attrs, Stated) else _key(attrs) if attrs else ()
        if said is None or op.several or len(types) > LONGEST_REMEMBERED or tuple in map(type, types):
            return self._make(op, types, attrs)
        number = op, types, said
        known = self.known.get(number)
        if known is None:
            known = self._make(op, types, attrs)
            if len(self.known) >= (self._most or MOST_CACHED):
                self.known.clear()  # what is in use is soon there again, at what it costs without
            self.known[number] = known
        return known


def _key(attrs: Mapping[str, Any]) -> tuple[Hashable, ...] | None:
    """Return a key that tells attributes apart; None if they are large, or of a kind that is not cached."""
    if not all(map(is_remembered, attrs.values())):
        return None
    return keyed(attrs)


class Inferred(NamedTuple):
    """Attributes with nothing left to interpret, and the type of each result."""

    attrs: Mapping[str, Any]
    types: tuple[TensorType, ...]


class Work(NamedTuple):
    """Floating-point operations, and bytes allocated beside the result."""

    flops: int
    workspace: int


def _infer(op: Definition, types: tuple[Any, ...], stated: Mapping[str, Any]) -> Inferred:
    if not op.is_leaf:
        op.check_operands(types)
    full = complete(op.name, op.attrs, stated) if stated or op.attrs else {}
    canonical = op.canonical(full, *types)
    result = op.infer(*types, **canonical)
    results = result if isinstance(result, tuple) else (result,)
    op.check_connection(types, results)
    return Inferred(Stated(canonical), results)


def _work(op: Definition, types: tuple[Any, ...], attrs: Mapping[str, Any]) -> Work:
    kernel = cast("Kernel", op)
    is_complex = any(isinstance(type, TensorType) and type.is_complex for type in types)
    each = _COMPLEX_FLOPS if is_complex else 1
    return Work(each * kernel.flops(*types, **attrs), kernel.workspace(*types, **attrs))


#: for operands of these types, which are checked. Raises EngineError, and TypeError for attributes that are unknown or
#: missing, and for a result in which gradients would end unsaid
inferred: Final = RuleCache(_infer)
#: for a result and operands of these types, the result's first
work: Final = RuleCache(_work)


# Graphs of opset 1 have no int16: there, int8 with uint8 is int32.


def without_int16(op: Definition, operands: Sequence[Emitted], attrs: Mapping[str, Any]) -> list[Emitted]:
    """The operands for an op of opset 1: int8 beside uint8 as int32, where the op brings them to a common dtype.

    It does where its results are of the same dtypes if both are int16.
    """
    if not {INT8, UINT8} <= {x.dtype for x in operands}:
        return list(operands)
    wide = [x.type.with_dtype(INT16) if x.dtype in (INT8, UINT8) else x.type for x in operands]
    try:
        brought_together = _dtypes(op, wide, attrs) == _dtypes(op, [x.type for x in operands], attrs)
    except EngineError:  # which is told of the operands as they are
        return list(operands)
    if not brought_together:
        return list(operands)
    return [x.cast(dtype=INT32) if x.dtype in (INT8, UINT8) else x for x in operands]


def _dtypes(op: Definition, types: Sequence[TensorType], attrs: Mapping[str, Any]) -> list[np.dtype[Any]]:
    return [type.dtype for type in inferred(op, tuple(types), attrs).types]


#: nodes between two looks at the deadline
_LOOK: Final = 256
#: of what is fed
_NO_WORK: Final = Work(0, 0)


def ancestors(roots: Iterable[int], operands: Callable[[int], Iterable[int]]) -> list[int]:
    """The nodes that `roots` depend on, themselves included, in ascending order; `operands` says what a node reads."""
    seen, todo = set(), list(roots)
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo.extend(operands(node))
    return sorted(seen)


class Origin(NamedTuple):
    """The client's node that something stems from, for messages: its number, and its op as the client knows it.

    `backward` marks what differentiation wrote on the way back through that node. It is a node of the graph, or of the
    `function` of this index. `inner` is the node of a function that was written in the place of this one, a call.
    """

    node: int
    op: str
    backward: bool = False
    function: int | None = None
    inner: Any = None  # Origin | None: no tuple of names may name itself

    def containing(self, inner: Origin | None) -> Origin:
        """Return this origin for a node of a function that was written in the place of this one."""
        return self._replace(inner=inner if self.inner is None else self.inner.containing(inner))


def at_origin(error: EngineError, origin: Origin | None) -> EngineError:
    """The error at the client's node that what raised it comes from."""
    if origin is None:
        return error
    error = at_origin(error, origin.inner)
    if origin.function is not None:
        return error.within(origin.function, origin.node, origin.op)
    return error.at(origin.node, origin.op)


class Node(NamedTuple):
    """One operation on earlier nodes, and where it comes from."""

    op: Definition
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    types: tuple[TensorType, ...]
    origin: Origin | None = None

    def on(self, operands: tuple[int, ...]) -> Node:
        """The same node on these operands."""
        op, before, attrs, types, origin = self
        return self if operands == before else Node._make((op, operands, attrs, types, origin))

    @property
    def type(self) -> TensorType:
        """The type of the (first) result."""
        return self.types[0]

    @property
    def is_leaf(self) -> bool:
        """Whether its value is fed: `attrs["feed"]` says from where."""
        return self.op.is_leaf

    @property
    def kernel(self) -> Kernel:
        """The op, where it computes. Raises TypeError for a leaf, and for a `grad` that was not written out."""
        if not self.op.is_kernel:
            raise TypeError(f"{self.op.name} has no kernel: it is fed, or should have been written out")
        return cast("Kernel", self.op)

    @property
    def view(self) -> View | None:
        """The op, where its result can share its operand's memory."""
        return cast("View", self.op) if self.op.is_view else None

    def work(self, types: Sequence[ResultTypes]) -> Work:
        """Return its work on operands of these `types`, by node. Raises TypeError if it does not compute."""
        out: ResultTypes = self.types if self.op.several else self.types[0]
        return work(self.kernel, (out, *[types[i] for i in self.operands]), self.attrs)

    @property
    def rules(self) -> Op:
        """The op, where it has rules of derivatives and batching. Raises TypeError as `kernel`, and for a source."""
        if not isinstance(self.op, Op):
            raise TypeError(f"{self.op.name} has no rules: it has no operands, or should have been written out")
        return self.op


def works(nodes: Iterable[Node], types: Sequence[ResultTypes]) -> list[Work]:
    """Return the work of each node on operands of these `types`, by node; nothing for a leaf.

    Nodes that say the same share their attributes and types, as objects: most are told by these, without a look into
    them. Raises TypeError where one does not compute.
    """
    known: dict[tuple[int, ...], Work] = {}
    all_work, type_of = list[Work](), types.__getitem__
    for node in nodes:
        op, operands, attrs, results, _ = node
        if op.is_leaf:
            all_work.append(_NO_WORK)
            continue
        told = (id(op), id(attrs), id(results), *map(id, map(type_of, operands)))
        taken = known.get(told)
        if taken is None:
            taken = known[told] = node.work(types)
        all_work.append(taken)
    return all_work


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in topological order, which of them are asked for, and the opset that they are written in."""

    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    registry: Registry = field(repr=False)

    @property
    def feeds(self) -> dict[Hashable, int]:
        """Map the key of each fed value to its leaf."""
        return {node.attrs["feed"]: i for i, node in enumerate(self.nodes) if node.is_leaf}

    def rewritten(self, nodes: Iterable[Node], outputs: Iterable[int]) -> Graph:
        """Other nodes and outputs, in the same opset."""
        return Graph(tuple(nodes), tuple(outputs), self.registry)


@dataclass(eq=False, slots=True)
class Builder:
    """A graph being written, in ops of `registry`. `origin` is stamped on the nodes that are emitted."""

    registry: Registry
    limits: Limits = field(default_factory=Limits)
    deadline: Deadline = NO_DEADLINE
    nodes: list[Node] = field(default_factory=list)
    origin: Origin | None = None
    #: whether int8 with uint8 is int16; else it is int32, as in opset 1
    has_int16: bool = True

    def emit(self, op: Definition, operands: Sequence[Value], attrs: Mapping[str, Any]) -> Value:
        """Append `op` on `operands`, inferring its type; composites append their parts.

        Raises EngineError, and TypeError for an attribute that the op does not have, or needs and does not get, and for
        a result in which gradients would end though the op has a rule of them.
        """
        if not self.has_int16 and (op.brings_together or not op.is_composite):
            operands = without_int16(op, operands, attrs)
        nodes = [self.nodes[v.index] for v in operands]
        attrs, types = inferred(op, tuple([n.types if n.op.several else n.types[0] for n in nodes]), attrs)
        parts: Value | None = op.compose(*operands, **attrs) if op.is_composite else None
        if parts is not None:
            return parts
        if not self.has_int16 and op.is_composite and INT16 in [type.dtype for type in types]:
            return self.emit(op, without_int16(op, operands, attrs), attrs)
        return self.append(Node(op, tuple([v.index for v in operands]), attrs, types, self.origin))

    def append(self, node: Node) -> Value:
        """Append a node whose types are known, within the limits."""
        index = len(self.nodes)
        self.limits.admit_nodes(index + 1)
        for type in node.types:
            self.limits.admit_type(type)
        if not index % _LOOK:
            self.deadline.check()
        self.nodes.append(node)
        return Value(self, index, node.types[0])

    @property
    def may_repeat(self) -> bool:
        """Whether a node whose types are admitted can be appended without a look at limits and deadline."""
        count = len(self.nodes)
        return count < self.limits.nodes and count % _LOOK != 0

    def repeat(self, node: Node, operands: tuple[int, ...], origin: Origin) -> int:
        """Append a node that says what one of this builder's says, on operands of the same types, where it
        `may_repeat`. Its number.
        """
        op, _, attrs, types, _ = node
        self.nodes.append(Node._make((op, operands, attrs, types, origin)))
        return len(self.nodes) - 1

    def copy(self, node: Node, operands: Sequence[Value]) -> Value:
        """Append `node` on other operands of the same types."""
        return self.append(node.on(tuple(v.index for v in operands)))

    def rewrite(self, graph: Graph, instead: Callable[[Node, Sequence[Value]], Value | None]) -> Graph:
        """`graph` node by node, with what `instead` appends in the place of a node, on what its operands have become.

        Where that is None, the node stays; where it is for all of them, the graph is the same.
        """
        values: list[Value] = []
        is_same = True
        for node in graph.nodes:
            operands = [values[i] for i in node.operands]
            self.origin = node.origin
            made = instead(node, operands)
            is_same = is_same and made is None
            if made is None and node.op.name == "get_output":
                made = operands[0].output(node.attrs["index"])  # of values that are packed, one of these
            values.append(self.copy(node, operands) if made is None else made)
        return graph if is_same else self.graph([values[i] for i in graph.outputs])

    def leaf(self, type: TensorType, feed: Hashable, op: str = "input") -> Value:
        """Append a value that is fed under the key `feed`."""
        return self.append(Node(self.registry.ops[op], (), {"feed": feed}, (type,), self.origin))

    def refeed(self, leaf: Value, feed: Hashable) -> None:
        """Feed a leaf under another key, so that its own is free for what takes its place."""
        self.nodes[leaf.index] = leaf.node._replace(attrs={"feed": feed})

    def full(self, shape: Sequence[int], fill: float, dtype: DType | str) -> Value:
        """Append a tensor that holds `fill` everywhere."""
        attrs = {"shape": tuple(shape), "fill": typed_number(fill, np.dtype(dtype)), "dtype": np.dtype(dtype)}
        return self.emit(self.registry.ops["full"], (), attrs)

    def constant(self, array: Any) -> Value:
        """Append a constant tensor."""
        return self.emit(self.registry.ops["constant"], (), {"value": np.asarray(array)})

    def arange(self, stop: int, step: int = 1, start: int = 0) -> Value:
        """Append start, start + step, … below `stop`, as int64."""
        attrs = {
            "start": typed_number(start, INT64),
            "stop": typed_number(stop, INT64),
            "step": typed_number(step, INT64),
            "dtype": INT64,
        }
        return self.emit(self.registry.ops["arange"], (), attrs)

    def value(self, index: int) -> Value:
        """The node at `index`, as a value."""
        return Value(self, index, self.nodes[index].types[0])

    def graph(self, outputs: Sequence[Value]) -> Graph:
        """Return the nodes written so far, as a graph with these outputs."""
        return Graph(tuple(self.nodes), tuple(v.index for v in outputs), self.registry)


@dataclass(slots=True, unsafe_hash=True)  # frozen, making one would take four times as long
class Value:
    """A node of a builder, as rules handle it. Never changed once made.

    Arithmetic operators and a method for every op emit nodes: `x.sum(axes=(0,))`, `a.where(b, c)`, `x @ w`. Python
    numbers stand for constants of the value's own dtype. `type` is that of the (first) result.
    """

    builder: Builder
    index: int
    type: TensorType = field(compare=False, repr=False)

    @property
    def node(self) -> Node:
        """The node itself."""
        return self.builder.nodes[self.index]

    @property
    def shape(self) -> Shape:
        """Extents of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.type.ndim

    def __getattr__(self, name: str) -> Callable[..., Value]:
        op = self.builder.registry.ops.get(name)
        if op is None:
            raise AttributeError(f"there is no op {name}")

        return partial(self._apply, op)

    def _apply(self, op: Definition, *operands: Value | float, **attrs: Any) -> Value:
        if not operands:
            return self.builder.emit(op, (self,), attrs)
        every = (self, *operands)
        dtype = next((v.dtype for v in every if isinstance(v, Value) and v.type.is_differentiable), self.dtype)
        lifted = [v if isinstance(v, Value) else self.builder.full((), v, dtype) for v in every]
        return self.builder.emit(op, lifted, attrs)

    def _with(self, other: Value | float, op: str) -> Value:
        """`op` on another value; on a number, its variant that has it as the attribute `scalar`."""
        ops = self.builder.registry.ops
        if isinstance(other, Value):
            return self.builder.emit(ops[op], (self, other), NONE)
        return self.builder.emit(ops[f"{op}_scalar"], (self,), {"scalar": weak_number(other)})

    def full_like(self, fill: float, shape: Sequence[int] | None = None) -> Value:
        """A constant of this dtype and, by default, this shape."""
        return self.builder.full(self.shape if shape is None else shape, fill, self.dtype)

    def output(self, index: int) -> Value:
        """One result of an op that has several."""
        return self.builder.emit(self.builder.registry.ops["get_output"], (self,), {"index": index})

    def __add__(self, other: Value | float) -> Value:
        return self._with(other, "add")

    def __sub__(self, other: Value | float) -> Value:
        return self._with(other, "sub")

    def __mul__(self, other: Value | float) -> Value:
        return self._with(other, "mul")

    def __truediv__(self, other: Value | float) -> Value:
        return self._with(other, "div")

    def __pow__(self, exponent: float) -> Value:
        return self.pow_scalar(exponent=weak_number(exponent))

    def __radd__(self, other: float) -> Value:
        return self + other

    def __rsub__(self, other: float) -> Value:
        return -self + other

    def __rmul__(self, other: float) -> Value:
        return self * other

    def __rtruediv__(self, other: float) -> Value:
        return self.reciprocal() if other == 1 else self.reciprocal() * other

    def __neg__(self) -> Value:
        return self.neg()

    def __matmul__(self, other: Value) -> Value:
        return self.matmul(other)

    def __gt__(self, other: Value | float) -> Value:
        return self.greater(other)

    def __ge__(self, other: Value | float) -> Value:
        return self.greater_equal(other)

    def __lt__(self, other: Value | float) -> Value:
        return self.less(other)

    def __le__(self, other: Value | float) -> Value:
        return self.less_equal(other)


# Functions of values that write no node where nothing would change: conjugate, adjoint, cast, permute, reshape.
#
# The cotangent of z = x + iy is ∂L/∂x + i ∂L/∂y, so that reverse mode is the adjoint under Re⟨a, b⟩: a holomorphic f
# pulls g back to g · conj(f′), as in PyTorch. JAX's `grad` is its conjugate.


def conjugate(x: Value) -> Value:
    """conj x; x itself where it is real."""
    return x.conj() if x.type.is_complex else x


def adjoint(x: Value) -> Value:
    """xᴴ of the matrices on the last two axes; xᵀ where they are real."""
    return conjugate(x.transpose())


def for_real(g: Value, type: TensorType) -> Value:
    """The part of a cotangent that is one of a tensor of this type: of a real tensor, the real part."""
    return g.real() if g.type.is_complex and not type.is_complex else g


def for_dtype(g: Value, type: TensorType) -> Value:
    """The same, in the dtype of the tensor."""
    part = for_real(g, type)
    return part if part.dtype == type.dtype else part.cast(dtype=type.dtype)


def permute(x: Value, order: Sequence[int]) -> Value:
    """x with its axes in this order; x itself where they are."""
    return x if list(order) == list(range(x.ndim)) else x.transpose(axes=tuple(order))


def unpermute(x: Value, order: Sequence[int]) -> Value:
    """Undo `permute` by `order`."""
    return permute(x, inverse(order))


def shaped(x: Value, shape: Sequence[int]) -> Value:
    """x in another shape; x itself where it has it."""
    return x if x.shape == tuple(shape) else x.reshape(shape=tuple(shape))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The order that undoes another."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))
