"""What the variables of a jaxpr stand for, and the graph that has their nodes."""

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

#: the words of a key of threefry, on an axis of their own behind those that JAX shows
_WORDS = 2


@dataclass(frozen=True)
class Summed:
    """How a value is a sum: of a node, over axes, with axes of extent 1 put in, of so many terms each."""

    node: Node
    axes: tuple[int, ...]
    put_in: tuple[int, ...]
    terms: int


class Later:
    """A node that is written where it is read first, if it is: a rule that reads the value may do without."""

    def __init__(self, write: Callable[[], Node]) -> None:
        self._write = write

    @cached_property
    def node(self) -> Node:
        """The node, once it is written."""
        return self._write()


@dataclass(eq=False)
class Value:
    """What a variable stands for.

    `shape` and `dtype` are those that JAX shows. Of keys, `is_key` says so, and the node has the two words of each key
    on a last axis. `constant` is the value where the function alone decides it: an array, or JAX's own of keys. `node`
    gives it in the graph of a scope. A `marker` is what a later rule makes more of than its node says, or what no node
    can give: a factorisation, random bits that become floats.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_key: bool = False
    constant: Any = None
    node: Node | None = None
    marker: Any = None
    summed: Summed | None = None

    @classmethod
    def typed(cls, aval: Any, **known: Any) -> Value:
        """A value of the type that a variable has."""
        shape = tuple(int(extent) for extent in aval.shape)
        if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
            return cls(shape, np.dtype(np.uint32), True, **known)
        return cls(shape, np.dtype(aval.dtype), **known)

    def with_node(self, node: Node) -> Value:
        """Another value of this type, which a node gives."""
        return Value(self.shape, self.dtype, self.is_key, node=node)

    @property
    def is_constant(self) -> bool:
        """Whether the function alone decides it."""
        return self.constant is not None

    @property
    def is_float(self) -> bool:
        """Whether it has derivatives: floats have, and complex numbers."""
        return self.dtype.kind in "fc"

    @property
    def is_complex(self) -> bool:
        """Whether it is of complex numbers."""
        return self.dtype.kind == "c"

    @property
    def node_shape(self) -> tuple[int, ...]:
        """The shape that its node has."""
        return (*self.shape, _WORDS) if self.is_key else self.shape


def unsendable(dtype: np.dtype[Any]) -> str | None:
    """What keeps a dtype from the wire, or None where nothing does."""
    return None if dtype.name in DTYPES else f"{dtype.name}, which the wire lacks"


def require_threefry(aval: Any) -> None:
    """Raise Blocked for the type of keys of another generator than threefry, and for threefry's older numbers."""
    if not jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        return
    if str(aval.dtype) != "key<fry>":
        raise Blocked("its keys are not those of threefry", "use jax.random.key, whose keys are of threefry")
    if not jax.config.jax_threefry_partitionable:
        raise Blocked("it draws by the older rules of threefry", "set jax_threefry_partitionable")


def typed(value: Value) -> Any:
    """The type of a value, as JAX traces with."""
    if value.is_key:
        return jax.eval_shape(jax.random.wrap_key_data, jax.ShapeDtypeStruct(value.node_shape, value.dtype))
    return jax.ShapeDtypeStruct(value.shape, value.dtype)


def words_of(keys: Any) -> Array:
    """The words of JAX's keys."""
    return np.asarray(jax.random.key_data(keys))


@dataclass(frozen=True)
class KnownCall:
    """A function with a rule of its own, on operands, whose results are known: those of the node that runs it."""

    told: str
    operands: Sequence[Value]
    results: Sequence[Value]

    def is_of(self, told: str, operands: Sequence[Value]) -> bool:
        """Whether it is this function on the same operands."""
        if told != self.told or len(operands) != len(self.operands):
            return False
        return all(_is_same(one, other) for one, other in zip(operands, self.operands, strict=True))


def _is_same(one: Value, other: Value) -> bool:
    if one is other:
        return True
    both = one.is_constant and other.is_constant and not one.is_key and not other.is_key
    return both and one.shape == other.shape and bool(np.array_equal(one.constant, other.constant))


class Scope:
    """A graph, or that of a function, with the nodes of constants in it.

    `known` are calls whose results it has; `rules` are the functions whose rules it is within, and `depth` counts all
    functions that it is within.
    """

    def __init__(
        self, graph: SourceGraph, known: Sequence[KnownCall] = (), depth: int = 0, rules: Sequence[str] = ()
    ) -> None:
        self.graph = graph
        self.known = tuple(known)
        self.depth = depth
        self.rules = tuple(rules)
        self._constants: dict[int, tuple[Value, Node]] = {}

    def within(self, rule: str) -> Scope:
        """The same graph, for functions that are within another rule."""
        return Scope(self.graph, self.known, self.depth, (*self.rules, rule))

    def node_of(self, value: Value) -> Node:
        """The node that gives a value here. Raises Blocked for what no node can give."""
        if value.node is not None:
            return value.node
        if isinstance(value.marker, Later):
            return value.marker.node
        if value.marker is not None:
            raise Blocked(value.marker.reason, value.marker.way_round)
        if id(value) not in self._constants:
            array = words_of(value.constant) if value.is_key else np.asarray(value.constant)
            reason = unsendable(array.dtype)
            if reason is not None:
                raise Blocked(f"it reads {reason}")
            self._constants[id(value)] = value, self.graph.constant(array)
        return self._constants[id(value)][1]
