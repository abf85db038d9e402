"""Values of a jaxpr's variables, and the scope that holds their nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.tensors import DTYPES, Array

#: words of a threefry key; a node of keys holds them on an additional last axis
_WORDS = 2


@dataclass(frozen=True)
class Summed:
    """Origin of a value that is a sum: the node and axes summed, axes of extent 1 inserted since, terms per element."""

    node: Node
    axes: tuple[int, ...]
    inserted: tuple[int, ...]
    terms: int


class LazyNode:
    """A node written when it is first read. A rule that recognises the value never writes it."""

    def __init__(self, write: Callable[[], Node]) -> None:
        self._write = write

    @cached_property
    def node(self) -> Node:
        """The node, written on first access."""
        return self._write()


@dataclass(eq=False)
class Value:
    """The value of a variable.

    `shape` and `dtype` are JAX's. For random keys (`is_key`), the node has the two words of each key on an additional
    last axis. `constant` is set if the value is the same for all inputs: an array, or a JAX array of keys. `node` is
    its node in the graph of a scope. `marker` is information that later rules read and no node holds: a factorization
    that may not be needed, or random bits that become floats.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_key: bool = False
    constant: Any = None
    node: Node | None = None
    marker: Any = None
    summed: Summed | None = None

    @classmethod
    def of_type(cls, aval: Any, **fields: Any) -> Value:
        """Return a value of this abstract type. `fields` are further fields."""
        shape = tuple(int(extent) for extent in aval.shape)
        if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
            return cls(shape, np.dtype(np.uint32), True, **fields)
        return cls(shape, np.dtype(aval.dtype), **fields)

    def with_node(self, node: Node) -> Value:
        """Return a value of the same type that is computed by a node."""
        return Value(self.shape, self.dtype, self.is_key, node=node)

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for all inputs."""
        return self.constant is not None

    @property
    def is_float(self) -> bool:
        """Whether it is real or complex floating point, and so has derivatives."""
        return self.dtype.kind in "fc"

    @property
    def is_complex(self) -> bool:
        """Whether it is complex."""
        return self.dtype.kind == "c"

    @property
    def node_shape(self) -> tuple[int, ...]:
        """The shape of its node."""
        return (*self.shape, _WORDS) if self.is_key else self.shape


def unsupported(dtype: np.dtype[Any]) -> str | None:
    """Return a phrase for a dtype that cannot be sent, or None if it can."""
    return None if dtype.name in DTYPES else f"{dtype.name}, an unsupported dtype"


def require_threefry(aval: Any) -> None:
    """Raise Blocked for keys of another generator than threefry, and for threefry's non-partitionable numbers."""
    if not jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        return
    if str(aval.dtype) != "key<fry>":
        raise Blocked("its keys are not threefry keys", "use jax.random.key, which makes threefry keys")
    if not jax.config.jax_threefry_partitionable:
        raise Blocked("it draws with the older, non-partitionable threefry", "set jax_threefry_partitionable")


def shape_dtype(value: Value) -> Any:
    """Return the type of a value as JAX traces with it."""
    if value.is_key:
        return jax.eval_shape(jax.random.wrap_key_data, jax.ShapeDtypeStruct(value.node_shape, value.dtype))
    return jax.ShapeDtypeStruct(value.shape, value.dtype)


def key_words(keys: Any) -> Array:
    """Return the words of an array of JAX keys."""
    return np.asarray(jax.random.key_data(keys))


@dataclass(frozen=True)
class KnownCall:
    """A call of a function with a custom rule. Its results are operands of the derivative, which can reuse them."""

    key: str
    operands: Sequence[Value]
    results: Sequence[Value]

    def matches(self, key: str, operands: Sequence[Value]) -> bool:
        """Return whether it is a call of this function on the same operands."""
        if key != self.key or len(operands) != len(self.operands):
            return False
        return all(_is_same(first, second) for first, second in zip(operands, self.operands, strict=True))


def _is_same(first: Value, second: Value) -> bool:
    if first is second:
        return True
    constants = first.is_constant and second.is_constant and not first.is_key and not second.is_key
    return constants and first.shape == second.shape and bool(np.array_equal(first.constant, second.constant))


class Scope:
    """The graph, or the graph of a function, and the nodes of constants in it.

    `known_calls` are calls whose results are available in it. `rules` names the custom rules that enclose it, and
    `depth` counts all functions that enclose it.
    """

    def __init__(
        self, graph: SourceGraph, known_calls: Sequence[KnownCall] = (), depth: int = 0, rules: Sequence[str] = ()
    ) -> None:
        self.graph = graph
        self.known_calls = tuple(known_calls)
        self.depth = depth
        self.rules = tuple(rules)
        self._constants: dict[int, tuple[Value, Node]] = {}

    def within(self, rule: str) -> Scope:
        """Return a scope of the same graph for functions inside this custom rule."""
        return Scope(self.graph, self.known_calls, self.depth, (*self.rules, rule))

    def node_of(self, value: Value) -> Node:
        """Return the node of a value here. Raises Blocked if no node can compute it."""
        if value.node is not None:
            return value.node
        if isinstance(value.marker, LazyNode):
            return value.marker.node
        if value.marker is not None:
            raise Blocked(value.marker.reason, value.marker.workaround)
        if id(value) not in self._constants:
            array = key_words(value.constant) if value.is_key else np.asarray(value.constant)
            reason = unsupported(array.dtype)
            if reason is not None:
                raise Blocked(f"it reads {reason}")
            self._constants[id(value)] = value, self.graph.constant(array)
        return self._constants[id(value)][1]
