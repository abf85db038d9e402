"""Models as protocols see them: inputs and outputs by name and by position, and the tensors that are bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import orjson

from engine import TensorType
from engine.ir.tensor_type import dtype_name, is_complex
from service.api.residents import Find
from service.core.errors import Refusal
from service.store.tables import FREE


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: a node under a name. An extent of -1 is free."""

    name: str
    node: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def is_free(self) -> bool:
        """True if an extent is free."""
        return FREE in self.shape

    @property
    def size(self) -> int:
        """Number of elements, if none of the extents is free."""
        return math.prod(self.shape)

    @property
    def is_differentiable(self) -> bool:
        """True if derivatives of it, and with respect to it, exist."""
        return TensorType((), np.dtype(self.dtype)).is_differentiable


@dataclass(frozen=True, slots=True)
class BoundTensor:
    """A leaf that is a resident tensor, and the type that it had when the model was put."""

    node: int
    tensor_id: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """A model that is kept, by its record."""

    name: str
    etag: str
    graph_id: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    bound: Sequence[BoundTensor]
    description: str = ""

    @classmethod
    def of(cls, record: bytes) -> Self:
        """Read a model from its record."""
        told: dict[str, Any] = orjson.loads(record)
        return cls(
            told["name"],
            told["etag"],
            told["graph_id"],
            tuple(map(_port, told["inputs"])),
            tuple(map(_port, told["outputs"])),
            [BoundTensor(one["node"], one["tensor_id"], one["dtype"], tuple(one["shape"])) for one in told["bound"]],
            told.get("description", ""),
        )

    @property
    def is_free(self) -> bool:
        """True if an input or output has free extents."""
        return any(port.is_free for port in (*self.inputs, *self.outputs))

    def require_real(self) -> None:
        """Raise Refusal if an input or output is complex, which other protocols do not have."""
        for port in (*self.inputs, *self.outputs):
            if is_complex(np.dtype(port.dtype)):
                told = f"the model “{self.name}” has complex numbers, as “{port.name}” of {port.dtype}"
                instead = "this protocol has none: call /v1/forward and /v1/gradients"
                raise Refusal("dtype_mismatch", f"{told}; {instead}", expected="real numbers", got=port.dtype)

    def feeds(self, tensors: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Make the feeds of a request, in which inputs of these names have these tensors."""
        ports = {port.name: port for port in self.inputs}
        given = ({"node": ports[name].node, "tensor": tensor} for name, tensor in tensors.items())
        return [*given, *({"node": one.node, "tensor_id": one.tensor_id} for one in self.bound)]

    def require_bound(self, find: Find) -> None:
        """Raise Refusal (shape_mismatch, dtype_mismatch) unless each bound tensor has the type that it had.

        A missing one is reported by the call that it is fed to.
        """
        for one in self.bound:
            version = find(one.tensor_id)
            if version is None:
                continue
            array = version.array
            if dtype_name(array.dtype) != one.dtype:
                raise self._other(one, "dtype_mismatch", one.dtype, dtype_name(array.dtype))
            if array.shape != one.shape:
                raise self._other(one, "shape_mismatch", f"{list(one.shape)}", f"{list(array.shape)}")

    def _other(self, one: BoundTensor, code: str, expected: str, got: str) -> Refusal:
        was = f"and was {expected} when the model “{self.name}” was put"
        detail = f"node {one.node}: the resident tensor “{one.tensor_id}” is {got}, {was}"
        return Refusal(code, detail, node=one.node, expected=expected, got=got)


def _port(told: dict[str, Any]) -> Port:
    return Port(told["name"], told["node"], told["dtype"], tuple(told["shape"]))
