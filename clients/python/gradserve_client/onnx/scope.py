"""Scopes of names in a model, and the value of each name."""

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
    """Stage at which a value is known: fixed in the file, trainable in the file, or only with the input data."""

    CONSTANT = 0
    MODEL = 1
    DATA = 2


class Unknown(Exception):
    """A value could not be translated. The obstacle that caused it has already been recorded."""


@dataclass(eq=False)
class Value:
    """Value of a name.

    `example` is the value for the example inputs: an array or another ONNX value, or None if it is unknown. `roots` are
    the model inputs that the value depends on. `node` is the node of the scope's graph that computes the value. It is
    None for constants and leaves that no rule has read yet.
    """

    name: str
    example: Any
    known: Known = Known.DATA
    roots: frozenset[str] = frozenset()
    node: Node | None = None
    #: whether the value is an initialiser that becomes a parameter when a rule first reads it as a node
    trained: bool = False
    #: names of the model's nodes that read the value
    readers: list[str] = field(default_factory=list)

    @property
    def has_example(self) -> bool:
        """Whether the value for the example inputs is known."""
        return self.example is not None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the example array."""
        dtype: np.dtype[Any] = self.example.dtype
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the example array."""
        return tuple(int(extent) for extent in self.example.shape)


def wire_obstacle(example: Any) -> str | None:
    """Return why an example cannot be sent as a tensor, or None if it can."""
    if not isinstance(example, np.ndarray | np.generic):
        return "a sequence, an optional or a map, none of which is a tensor"
    if example.dtype.name in REALS:
        return None
    if example.dtype.kind in "OUS":
        return "strings, which gradserve does not support"
    return f"{example.dtype.name}, an unsupported dtype"


class Scope:
    """Names of a graph, of a body, or of a function by which ONNX defines an op.

    `opsets` maps domains to versions. `expanded` is true if the nodes come from an op's definition and not from the
    file. A name of the outer scope is visible directly only if it is a constant; other values are passed to bodies as
    operands.
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
        """Return the value of a name, or None if it has no value, as for an omitted input of a function."""
        if name in self._values:
            return self._values[name]
        outer_value = self.outer.find(name) if self.outer is not None else None
        if outer_value is None or outer_value.known is not Known.CONSTANT:
            return outer_value
        # the constant's node belongs to the outer graph, so this scope needs its own value without a node
        self._values[name] = Value(name, outer_value.example, Known.CONSTANT, outer_value.roots)
        return self._values[name]

    def node_of(self, value: Value) -> Node:
        """Return the node of a value, and create it if there is none yet.

        Raises Blocked if the value is not a tensor.
        """
        if not value.has_example:
            raise Unknown(value.name)
        if value.node is None:
            reason = wire_obstacle(value.example)
            if reason is not None:
                raise Blocked(f"{value.name!r} holds {reason}")
            value.node = self._leaf(value) if value.trained else self.graph.constant(np.asarray(value.example))
        return value.node

    def _leaf(self, value: Value) -> Node:
        return self.graph.parameter(
            named(value.name), dtype=value.dtype.name, shape=list(value.shape), zero_d=not value.shape or None
        )


def named(name: str) -> str | None:
    """Return a name for a node, or None if it is longer than names may be."""
    return name if len(name) <= 128 else None
