"""The intermediate representation: typed nodes in a list, each of which refers to earlier nodes only.

A `Node` has an op, the indices of its operands, canonical attributes, the types of its results, and its origin: the
client's node that error messages name. A `Graph` is an immutable list of nodes with the indices of its outputs. Since
operands come first, a walk in ascending order visits operands before their readers, and reverse mode walks in
descending order. Transforms and passes never change a graph; they write another one.

A `Builder` is a graph under construction. Rules handle its nodes as `Value`s. Calling a method with an op's name
appends a node, so that rules read like mathematics:

    builder = Builder(registry)
    x = builder.leaf(TensorType((2, 3), np.dtype("float64")), "x")
    graph = builder.graph([(1 - x.square()).sum(axes=(0,))])

`engine.ir.text` prints this graph as

    %0 = input {"feed": "x"} : float64[2,3]
    %1 = square(%0) : float64[2,3]
    %2 = neg(%1) : float64[2,3]
    %3 = add_scalar(%2) {"scalar": 1.0} : float64[2,3]
    %4 = sum(%3) {"axes": [0], "keepdims": false} : float64[3]
    return %4

Appending a node infers its canonical attributes and types, and raises the error that the client reads. A composite op
appends its parts instead. Nothing is merged or simplified while building: equal nodes stay separate, so that a
derivative with respect to one of them is well defined. Passes merge them once no node is referred to by name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import numpy as np

from engine.ir.attributes import complete, make_attributes_key
from engine.ir.errors import EngineError
from engine.ir.kinds import is_cacheable
from engine.ir.kinds.kind import LONGEST_CACHED
from engine.ir.kinds.scalars import typed_number, weak_number
from engine.ir.op import NONE, Definition, Emitted, Kernel, Op, Registry, ResultTypes, View
from engine.ir.run_context import NO_DEADLINE, Deadline, Limits
from engine.ir.tensor_type import INT8, INT16, INT32, INT64, UINT8, DType, Shape, TensorType

# Inference: canonical attributes, result types and cost of an op on operands of given types.
#
# Graphs repeat the same few nodes, within a graph and from one graph to the next. So results of rules are cached for
# the whole process, by op, operand types and attributes. Attribute keys distinguish types and bits (1, 1.0 and True
# differ); large attributes are not cached. Repeated nodes share the cached objects, so that later lookups can compare
# identities.

_Made = TypeVar("_Made")

#: default capacity of a cache: 4096 entries take about 4 MB
MOST_CACHED: Final = 4096
#: real operations per complex operation: LAPACK counts 6 for a product and 2 for a sum, on average 4
_COMPLEX_FLOPS: Final = 4


class KeyedAttributes(dict[str, Any]):
    """Immutable attributes with their cache key; `key` is None if they are not cached."""

    __slots__ = ("key",)

    def __init__(self, attrs: Mapping[str, Any]) -> None:
        super().__init__(attrs)
        self.key = _key(attrs)


def attributes_key(attrs: Mapping[str, Any]) -> Hashable:
    """Return a hashable key of attributes. It is computed in advance unless they are large."""
    key = attrs.key if isinstance(attrs, KeyedAttributes) else None
    return make_attributes_key(attrs) if key is None else key


def is_small(attrs: Mapping[str, Any]) -> bool:
    """Return whether attributes are small enough to be cached: a few numbers and names, no tensors."""
    return not attrs or (isinstance(attrs, KeyedAttributes) and attrs.key is not None)


class RuleCache(Generic[_Made]):
    """Cache of `make(op, types, attrs)`, by op, types and attributes.

    Threads may share it: two concurrent misses both call `make`, with equal results. Errors are not cached.
    """

    def __init__(
        self, make: Callable[[Definition, tuple[Any, ...], Mapping[str, Any]], _Made], capacity: int | None = None
    ) -> None:
        """Hold at most `capacity` entries; None means MOST_CACHED."""
        self._make = make
        self._capacity = capacity
        self.entries: dict[Hashable, _Made] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def __call__(self, op: Definition, types: tuple[Any, ...], attrs: Mapping[str, Any]) -> _Made:
        """Return the cached result, or that of `make`. Raises what `make` raises."""
        attrs_key = attrs.key if isinstance(attrs, KeyedAttributes) else _key(attrs) if attrs else ()
        if attrs_key is None or op.several or len(types) > LONGEST_CACHED or tuple in map(type, types):
            return self._make(op, types, attrs)
        key = op, types, attrs_key
        result = self.entries.get(key)
        if result is None:
            result = self._make(op, types, attrs)
            if len(self.entries) >= (self._capacity or MOST_CACHED):
                self.entries.clear()  # cheaper than tracking recent use: entries still in use are recomputed once
            self.entries[key] = result
        return result


def _key(attrs: Mapping[str, Any]) -> tuple[Hashable, ...] | None:
    """Return a hashable key of attributes; None if they are too large to cache, or of a kind that is not cached."""
    if not all(map(is_cacheable, attrs.values())):
        return None
    return make_attributes_key(attrs)


class Inferred(NamedTuple):
    """Canonical attributes, with nothing left to interpret, and the type of each result."""

    attrs: Mapping[str, Any]
    types: tuple[TensorType, ...]


class Work(NamedTuple):
    """Floating-point operations, and bytes allocated in addition to the result."""

    flops: int
    workspace: int


def _infer(op: Definition, types: tuple[Any, ...], stated: Mapping[str, Any]) -> Inferred:
    if not op.is_leaf:
        op.check_operands(types)
    complete_attrs = complete(op.name, op.attrs, stated) if stated or op.attrs else {}
    canonical = op.canonical(complete_attrs, *types)
    result = op.infer(*types, **canonical)
    results = result if isinstance(result, tuple) else (result,)
    op.check_connection(types, results)
    return Inferred(KeyedAttributes(canonical), results)


def _work(op: Definition, types: tuple[Any, ...], attrs: Mapping[str, Any]) -> Work:
    kernel = cast("Kernel", op)
    is_complex = any(isinstance(type, TensorType) and type.is_complex for type in types)
    factor = _COMPLEX_FLOPS if is_complex else 1
    return Work(factor * kernel.flops(*types, **attrs), kernel.workspace(*types, **attrs))


#: attributes and types for checked operand types. Raises EngineError; TypeError for attributes that are unknown or
#: missing, and for a result dtype at which gradients would end unnoticed
inferred: Final = RuleCache(_infer)
#: work for (result type, *operand types)
work: Final = RuleCache(_work)


# Promotion in opset 1, which has no int16: int8 with uint8 gives int32.


def promote_for_opset1(op: Definition, operands: Sequence[Emitted], attrs: Mapping[str, Any]) -> list[Emitted]:
    """Return the operands for an op of opset 1: int8 beside uint8 becomes int32, if the op promotes its operands.

    An op promotes them if its result dtypes are the same as with int16 operands.
    """
    if not {INT8, UINT8} <= {x.dtype for x in operands}:
        return list(operands)
    widened = [x.type.with_dtype(INT16) if x.dtype in (INT8, UINT8) else x.type for x in operands]
    try:
        is_promoted = _dtypes(op, widened, attrs) == _dtypes(op, [x.type for x in operands], attrs)
    except EngineError:  # emitting the op raises it again, about the original operands
        return list(operands)
    if not is_promoted:
        return list(operands)
    return [x.cast(dtype=INT32) if x.dtype in (INT8, UINT8) else x for x in operands]


def _dtypes(op: Definition, types: Sequence[TensorType], attrs: Mapping[str, Any]) -> list[np.dtype[Any]]:
    return [type.dtype for type in inferred(op, tuple(types), attrs).types]


#: number of nodes between two deadline checks
_NODES_PER_CHECK: Final = 256
#: work of a leaf
_NO_WORK: Final = Work(0, 0)


def ancestors(roots: Iterable[int], operands: Callable[[int], Iterable[int]]) -> list[int]:
    """Return the nodes that `roots` depend on, including themselves, in ascending order.

    `operands` lists a node's operands.
    """
    seen, pending = set(), list(roots)
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending.extend(operands(node))
    return sorted(seen)


class Origin(NamedTuple):
    """The client's node that a node stems from, for messages: its index, and the op under the client's name.

    `backward` marks nodes that differentiating it appended. The index refers to the graph, or to the `function` with
    this index. If the client's node calls a function, `inner` is the node within that function.
    """

    node: int
    op: str
    backward: bool = False
    function: int | None = None
    inner: Any = None  # Origin | None: a NamedTuple cannot refer to itself

    def containing(self, inner: Origin | None) -> Origin:
        """Return this origin for a node of a function that was inlined in its place."""
        return self._replace(inner=inner if self.inner is None else self.inner.containing(inner))


def locate_error(error: EngineError, origin: Origin | None) -> EngineError:
    """Return the error located at the client's node that it originates from."""
    if origin is None:
        return error
    error = locate_error(error, origin.inner)
    if origin.function is not None:
        return error.within(origin.function, origin.node, origin.op)
    return error.at(origin.node, origin.op)


class Node(NamedTuple):
    """One operation on earlier nodes, and its origin."""

    op: Definition
    operands: tuple[int, ...]
    attrs: Mapping[str, Any]
    types: tuple[TensorType, ...]
    origin: Origin | None = None

    def with_operands(self, operands: tuple[int, ...]) -> Node:
        """Return the node with other operands."""
        op, current, attrs, types, origin = self
        return self if operands == current else Node._make((op, operands, attrs, types, origin))

    @property
    def type(self) -> TensorType:
        """The type of the (first) result."""
        return self.types[0]

    @property
    def is_leaf(self) -> bool:
        """Whether the node is fed; `attrs["feed"]` is the key it is fed under."""
        return self.op.is_leaf

    @property
    def kernel(self) -> Kernel:
        """The op as a Kernel. Raises TypeError for a leaf, and for a `grad` that was not expanded."""
        if not self.op.is_kernel:
            raise TypeError(f"{self.op.name} has no kernel: it is fed, or should have been written out")
        return cast("Kernel", self.op)

    @property
    def view(self) -> View | None:
        """The op if its result can share its operand's memory, else None."""
        return cast("View", self.op) if self.op.is_view else None

    def work(self, types: Sequence[ResultTypes]) -> Work:
        """Return its work; `types` lists the types of all nodes. Raises TypeError if the op does not compute."""
        out: ResultTypes = self.types if self.op.several else self.types[0]
        return work(self.kernel, (out, *[types[i] for i in self.operands]), self.attrs)

    @property
    def rules(self) -> Op:
        """The op as an Op, with derivative and batching rules.

        Raises TypeError as `kernel` does, and for an op without operands.
        """
        if not isinstance(self.op, Op):
            raise TypeError(f"{self.op.name} has no rules: it has no operands, or should have been written out")
        return self.op


def work_by_node(nodes: Iterable[Node], types: Sequence[ResultTypes]) -> list[Work]:
    """Return the work of each node; `types` lists the types of all nodes. Leaves have none.

    Repeated nodes share their attribute and type objects, so most lookups compare object ids only. Raises TypeError for
    a node that does not compute.
    """
    by_identity: dict[tuple[int, ...], Work] = {}
    all_work, type_of = list[Work](), types.__getitem__
    for node in nodes:
        op, operands, attrs, results, _ = node
        if op.is_leaf:
            all_work.append(_NO_WORK)
            continue
        identity = (id(op), id(attrs), id(results), *map(id, map(type_of, operands)))
        node_work = by_identity.get(identity)
        if node_work is None:
            node_work = by_identity[identity] = node.work(types)
        all_work.append(node_work)
    return all_work


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in topological order, the indices of the outputs, and the opset."""

    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]
    registry: Registry = field(repr=False)

    @property
    def feeds(self) -> dict[Hashable, int]:
        """Map the key of each fed value to its leaf."""
        return {node.attrs["feed"]: i for i, node in enumerate(self.nodes) if node.is_leaf}

    def with_nodes(self, nodes: Iterable[Node], outputs: Iterable[int]) -> Graph:
        """Return a graph of other nodes and outputs in the same opset."""
        return Graph(tuple(nodes), tuple(outputs), self.registry)


@dataclass(eq=False, slots=True)
class Builder:
    """Graph under construction, in ops of `registry`. `origin` is stamped on emitted nodes."""

    registry: Registry
    limits: Limits = field(default_factory=Limits)
    deadline: Deadline = NO_DEADLINE
    nodes: list[Node] = field(default_factory=list)
    origin: Origin | None = None
    #: whether int8 with uint8 gives int16; if not, int32 as in opset 1
    has_int16: bool = True

    def emit(self, op: Definition, operands: Sequence[Value], attrs: Mapping[str, Any]) -> Value:
        """Append `op` on `operands` and infer its type; a composite appends its parts.

        Raises EngineError. Raises TypeError for an attribute that is unknown or missing, and for a result dtype at
        which gradients would end although the op has a derivative rule.
        """
        if not self.has_int16 and (op.promotes_operands or not op.is_composite):
            operands = promote_for_opset1(op, operands, attrs)
        nodes = [self.nodes[v.index] for v in operands]
        attrs, types = inferred(op, tuple([n.types if n.op.several else n.types[0] for n in nodes]), attrs)
        parts: Value | None = op.compose(*operands, **attrs) if op.is_composite else None
        if parts is not None:
            return parts
        if not self.has_int16 and op.is_composite and INT16 in [type.dtype for type in types]:
            return self.emit(op, promote_for_opset1(op, operands, attrs), attrs)
        return self.append(Node(op, tuple([v.index for v in operands]), attrs, types, self.origin))

    def append(self, node: Node) -> Value:
        """Append a node whose types are known, within the limits."""
        index = len(self.nodes)
        self.limits.admit_nodes(index + 1)
        for type in node.types:
            self.limits.admit_type(type)
        if not index % _NODES_PER_CHECK:
            self.deadline.check()
        self.nodes.append(node)
        return Value(self, index, node.types[0])

    @property
    def may_repeat(self) -> bool:
        """Whether `repeat` may skip the limits and the deadline: there is room for a node, and no check is due."""
        count = len(self.nodes)
        return count < self.limits.nodes and count % _NODES_PER_CHECK != 0

    def repeat(self, node: Node, operands: tuple[int, ...], origin: Origin) -> int:
        """Append a copy of one of the builder's nodes on operands of the same types, and return its index.

        Call it only if `may_repeat`.
        """
        op, _, attrs, types, _ = node
        self.nodes.append(Node._make((op, operands, attrs, types, origin)))
        return len(self.nodes) - 1

    def copy(self, node: Node, operands: Sequence[Value]) -> Value:
        """Append `node` on other operands of the same types."""
        return self.append(node.with_operands(tuple(v.index for v in operands)))

    def rewrite(self, graph: Graph, replace: Callable[[Node, Sequence[Value]], Value | None]) -> Graph:
        """Append `graph` node by node, with the value that `replace` returns for a node and its new operands.

        If `replace` returns None, the node is copied; if it does so for all nodes, `graph` itself is returned.
        """
        values: list[Value] = []
        is_unchanged = True
        for node in graph.nodes:
            operands = [values[i] for i in node.operands]
            self.origin = node.origin
            replacement = replace(node, operands)
            is_unchanged = is_unchanged and replacement is None
            if replacement is None and node.op.name == "get_output":
                replacement = operands[0].output(node.attrs["index"])  # the operand may now be packed values: unpack
            values.append(self.copy(node, operands) if replacement is None else replacement)
        return graph if is_unchanged else self.graph([values[i] for i in graph.outputs])

    def leaf(self, type: TensorType, feed: Hashable, op: str = "input") -> Value:
        """Append a value that is fed under the key `feed`."""
        return self.append(Node(self.registry.ops[op], (), {"feed": feed}, (type,), self.origin))

    def refeed(self, leaf: Value, feed: Hashable) -> None:
        """Feed a leaf under another key, which frees its key for a replacement."""
        self.nodes[leaf.index] = leaf.node._replace(attrs={"feed": feed})

    def full(self, shape: Sequence[int], fill: float, dtype: DType | str) -> Value:
        """Append a tensor filled with `fill`."""
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
        """Return the node at `index` as a value."""
        return Value(self, index, self.nodes[index].types[0])

    def graph(self, outputs: Sequence[Value]) -> Graph:
        """Return the nodes written so far, as a graph with these outputs."""
        return Graph(tuple(self.nodes), tuple(v.index for v in outputs), self.registry)


@dataclass(slots=True, unsafe_hash=True)  # not frozen: creating a frozen instance takes four times as long
class Value:
    """Handle of a builder's node, for rules. Never changed once created.

    Arithmetic operators and a method for every op emit nodes: `x.sum(axes=(0,))`, `a.where(b, c)`, `x @ w`. Python
    numbers stand for constants of the value's own dtype. `type` is that of the (first) result.
    """

    builder: Builder
    index: int
    type: TensorType = field(compare=False, repr=False)

    @property
    def node(self) -> Node:
        """The underlying node."""
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
        mixed = (self, *operands)
        dtype = next((v.dtype for v in mixed if isinstance(v, Value) and v.type.is_differentiable), self.dtype)
        values = [v if isinstance(v, Value) else self.builder.full((), v, dtype) for v in mixed]
        return self.builder.emit(op, values, attrs)

    def _with(self, other: Value | float, op: str) -> Value:
        """Emit `op` with another value, or its scalar variant with a number."""
        ops = self.builder.registry.ops
        if isinstance(other, Value):
            return self.builder.emit(ops[op], (self, other), NONE)
        return self.builder.emit(ops[f"{op}_scalar"], (self,), {"scalar": weak_number(other)})

    def full_like(self, fill: float, shape: Sequence[int] | None = None) -> Value:
        """Return a constant of this dtype and, by default, this shape."""
        return self.builder.full(self.shape if shape is None else shape, fill, self.dtype)

    def output(self, index: int) -> Value:
        """Return one result of an op that has several."""
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


# Functions of values that append no node if nothing would change: conjugate, adjoint, cast, permute, reshape.
#
# The cotangent of z = x + iy is ∂L/∂x + i ∂L/∂y, so reverse mode is the adjoint under Re⟨a, b⟩: a holomorphic f pulls
# g back to g · conj(f′), as in PyTorch. JAX's `grad` is the conjugate of this.


def conjugate(x: Value) -> Value:
    """Return conj x; x itself if it is real."""
    return x.conj() if x.type.is_complex else x


def adjoint(x: Value) -> Value:
    """Return xᴴ of the matrices on the last two axes; xᵀ if they are real."""
    return conjugate(x.transpose())


def real_cotangent(g: Value, type: TensorType) -> Value:
    """Return a cotangent for a tensor of this type: its real part if the tensor is real."""
    return g.real() if g.type.is_complex and not type.is_complex else g


def cast_cotangent(g: Value, type: TensorType) -> Value:
    """Return a cotangent for a tensor of this type, in the tensor's dtype."""
    part = real_cotangent(g, type)
    return part if part.dtype == type.dtype else part.cast(dtype=type.dtype)


def permute(x: Value, order: Sequence[int]) -> Value:
    """Return x with its axes in this order; x itself if they already are."""
    return x if list(order) == list(range(x.ndim)) else x.transpose(axes=tuple(order))


def unpermute(x: Value, order: Sequence[int]) -> Value:
    """Undo `permute` by `order`."""
    return permute(x, inverse(order))


def shaped(x: Value, shape: Sequence[int]) -> Value:
    """Return x in another shape; x itself if it already has it."""
    return x if x.shape == tuple(shape) else x.reshape(shape=tuple(shape))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """Return the inverse permutation."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))
