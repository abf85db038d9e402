"""The names that the nodes of a model see, and what is known of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.tensors import REALS


class Known(IntEnum):
    """When a value is known: in the file, as it stands there and can be trained, or only with the data."""

    CONSTANT = 0
    MODEL = 1
    DATA = 2


class Unknown(Exception):
    """There is no value, since what would give it cannot be said; which has been noted."""


@dataclass(eq=False)
class Value:
    """What a name stands for.

    `example` is its value for the example inputs, an array, or what else ONNX has; None where that is not known.
    `roots` are the inputs of the model that it depends on. `node` gives it in the graph of its scope: a constant, and a
    leaf that nobody has read, have none yet.
    """

    name: str
    example: Any
    known: Known = Known.DATA
    roots: frozenset[str] = frozenset()
    node: Node | None = None
    #: whether it is an initialiser that becomes a parameter once it is read as a node
    trained: bool = False
    #: the nodes of the model that read it
    readers: list[str] = field(default_factory=list)

    @property
    def is_told(self) -> bool:
        """Whether the example has a value."""
        return self.example is not None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its array."""
        dtype: np.dtype[Any] = self.example.dtype
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its array."""
        return tuple(int(extent) for extent in self.example.shape)


def unsendable(example: Any) -> str | None:
    """What keeps an example from being a tensor of the wire, or None where nothing does."""
    if not isinstance(example, np.ndarray | np.generic):
        return "a sequence, an optional or a map, which are no tensors"
    if example.dtype.name in REALS:
        return None
    if example.dtype.kind in "OUS":
        return "strings, which are no tensors of the wire"
    return f"{example.dtype.name}, which the wire lacks"


class Scope:
    """The names of a graph, of a body, or of a function that ONNX writes an op with.

    `opsets` are versions by domain. `expanded` says that its nodes are those of an op's definition, which stand in no
    file. Names of the scope around are seen where they are constants; others are passed to bodies.
    """

    def __init__(
        self, graph: SourceGraph, opsets: Mapping[str, int], outer: Scope | None = None, expanded: bool = False
    ) -> None:
        self.graph = graph
        self.opsets = opsets
        self.outer = outer
        self.expanded = expanded
        self._values: dict[str, Value] = {}

    def __setitem__(self, name: str, value: Value) -> None:
        self._values[name] = value

    def find(self, name: str) -> Value | None:
        """The value of a name, or None where it has none: of an input of a function that was left out."""
        if name in self._values:
            return self._values[name]
        around = self.outer.find(name) if self.outer is not None else None
        if around is None or around.known is not Known.CONSTANT:
            return around
        # the node of a constant is one of the graph around
        self._values[name] = Value(name, around.example, Known.CONSTANT, around.roots)
        return self._values[name]

    def node_of(self, value: Value) -> Node:
        """The node that gives a value, made where there is none yet. Raises Blocked for what is no tensor."""
        if not value.is_told:
            raise Unknown(value.name)
        if value.node is None:
            reason = unsendable(value.example)
            if reason is not None:
                raise Blocked(f"{value.name!r} is of {reason}")
            value.node = self._leaf(value) if value.trained else self.graph.constant(np.asarray(value.example))
        return value.node

    def _leaf(self, value: Value) -> Node:
        return self.graph.parameter(
            named(value.name), dtype=value.dtype.name, shape=list(value.shape), zero_d=not value.shape or None
        )


def named(name: str) -> str | None:
    """A name for a node, where it is not longer than names may be."""
    return name if len(name) <= 128 else None
