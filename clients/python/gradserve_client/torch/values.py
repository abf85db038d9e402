"""What the results of a program's nodes are while it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked, SourceGraph
from gradserve_client.importing.writing import filling
from gradserve_client.tensors import DTYPES

#: a constant of one number is written as that number where it has more elements
_WRITTEN_OUT = 16


class Unknown(Exception):
    """There is no value, since what would give it cannot be said; which has been noted."""


@dataclass(frozen=True)
class Type:
    """A tensor's dtype, by its name, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def is_float(self) -> bool:
        """Whether it is one of the floats that have derivatives."""
        return self.dtype.startswith("float")

    @property
    def is_complex(self) -> bool:
        """Whether it is of complex numbers."""
        return self.dtype.startswith("complex")


@dataclass(eq=False)
class Value:
    """A tensor of the program: one that depends on leaves, which `node` gives, or a `constant`.

    `narrow` is what it repeats along axes that NumPy's rule would repeat by itself.
    """

    type: Type
    node: Node | None = None
    constant: torch.Tensor | None = None
    narrow: Value | None = field(default=None, repr=False)

    def given_by(self, graph: SourceGraph) -> Node:
        """The node that gives it, made where there is none yet."""
        if self.node is None:
            if self.constant is None:
                assert self.narrow is not None, "it is repeated, a constant, or a node"
                self.node = self.narrow.given_by(graph).broadcast_to(shape=list(self.type.shape))
            else:
                self.node = written(graph, self.constant)
        return self.node

    @property
    def number(self) -> float | None:
        """The one number that all elements of a constant are; None where there are several, or none, or it is data."""
        if self.constant is None or self.constant.numel() == 0:
            return None
        first = self.constant.reshape(-1)[0]
        return first.item() if bool((self.constant == first).all()) else None


def type_of(tensor: torch.Tensor) -> Type:
    """The type of a tensor, or of what stands for one. Raises Blocked for a shape that depends on data."""
    shape = tuple(tensor.shape)
    if not all(isinstance(extent, int) for extent in shape):
        raise Blocked(
            "how large its result is depends on the values of the data",
            "choose with torch.where, take torch.nonzero_static, or pass the positions as an input",
        )
    return Type(str(tensor.dtype).removeprefix("torch."), shape)


def require_sendable(kind: Type) -> None:
    """Raise Blocked for a dtype that the wire lacks."""
    if kind.dtype not in DTYPES:
        raise Blocked(f"it gives {kind.dtype}, which the wire lacks", "convert the module with .double() or .float()")


def constant_of(value: Any, dtype: str | None = None) -> Value:
    """A constant, of a number or a tensor."""
    tensor = torch.as_tensor(value, dtype=None if dtype is None else getattr(torch, dtype))
    return Value(type_of(tensor), constant=tensor)


def written(graph: SourceGraph, tensor: torch.Tensor) -> Node:
    """The node of a constant: `full` where it is one number, many times."""
    value = constant_of(tensor)
    require_sendable(value.type)
    number = value.number if tensor.numel() > _WRITTEN_OUT else None
    if number is None or value.type.is_complex or (np.isfinite(number) and abs(number) > 2**53):
        return graph.constant(tensor.numpy(force=True))
    return graph.full(shape=list(value.type.shape), dtype=value.type.dtype, **filling(number))
