"""Values of a program's nodes during translation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.importing.writing import fill_attribute
from gradserve_client.tensors import DTYPES

#: a constant with more elements that are all equal is written as `full`
_MAX_LITERAL_SIZE = 16


class Unknown(Exception):
    """Raised for a value that depends on an unsupported node. The obstacle is already recorded."""


@dataclass(frozen=True)
class Type:
    """A tensor's dtype by name, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def is_float(self) -> bool:
        """Whether it is a real float, which has derivatives."""
        return self.dtype.startswith("float")

    @property
    def is_complex(self) -> bool:
        """Whether it is complex."""
        return self.dtype.startswith("complex")


@dataclass(eq=False)
class Value:
    """A tensor of the program: computed by `node`, or a `constant`.

    `unexpanded` is the value that an `expand` repeated. Its node is written only if a rule cannot broadcast instead.
    """

    type: Type
    node: Node | None = None
    constant: torch.Tensor | None = None
    unexpanded: Value | None = field(default=None, repr=False)

    def node_in(self, graph: SourceGraph) -> Node:
        """Return its node, which is written on first use."""
        if self.node is None:
            if self.constant is None:
                assert self.unexpanded is not None, "it is repeated, a constant, or a node"
                self.node = self.unexpanded.node_in(graph).broadcast_to(shape=list(self.type.shape))
            else:
                self.node = write_constant(graph, self.constant)
        return self.node

    @property
    def number(self) -> float | None:
        """The number that all elements of a constant equal. None if they differ, if it is empty or not a constant."""
        if self.constant is None or self.constant.numel() == 0:
            return None
        first = self.constant.reshape(-1)[0]
        return first.item() if bool((self.constant == first).all()) else None


def type_of(tensor: torch.Tensor) -> Type:
    """Return the type of a real or fake tensor. Raises Blocked if its shape depends on data."""
    shape = tuple(tensor.shape)
    if not all(isinstance(extent, int) for extent in shape):
        raise Blocked(
            "the size of its result depends on the values of the data",
            "use torch.where or torch.nonzero_static, or pass the positions as an input",
        )
    return Type(str(tensor.dtype).removeprefix("torch."), shape)


def require_supported(kind: Type) -> None:
    """Raise Blocked for an unsupported dtype."""
    if kind.dtype not in DTYPES:
        raise Blocked(f"it returns {kind.dtype}, an unsupported dtype", "convert the module with .double() or .float()")


def constant_of(value: Any, dtype: str | None = None) -> Value:
    """Return a constant value for a number or tensor."""
    tensor = torch.as_tensor(value, dtype=None if dtype is None else getattr(torch, dtype))
    return Value(type_of(tensor), constant=tensor)


def write_constant(graph: SourceGraph, tensor: torch.Tensor) -> Node:
    """Write the node of a constant: `full` if it repeats one number many times."""
    value = constant_of(tensor)
    require_supported(value.type)
    number = value.number if tensor.numel() > _MAX_LITERAL_SIZE else None
    if number is None or value.type.is_complex or (np.isfinite(number) and abs(number) > 2**53):
        return graph.constant(tensor.numpy(force=True))
    return graph.full(shape=list(value.type.shape), dtype=value.type.dtype, **fill_attribute(number))
