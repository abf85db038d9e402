"""Models as protocols see them: inputs and outputs by name and position, and the bound tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import orjson

from engine import TensorType
from engine.ir.tensor_type import dtype_name, is_complex
from service.api.residents import FindTensor
from service.core.errors import Refusal
from service.store.tables import FREE


@dataclass(frozen=True, slots=True)
class Port:
    """Input or output of a model: a named node. An extent of -1 is free."""

    name: str
    node: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def is_free(self) -> bool:
        """Whether an extent is free."""
        return FREE in self.shape

    @property
    def size(self) -> int:
        """Number of elements, if no extent is free."""
        return math.prod(self.shape)

    @property
    def is_differentiable(self) -> bool:
        """Whether derivatives of it, and with respect to it, exist."""
        return TensorType((), np.dtype(self.dtype)).is_differentiable


@dataclass(frozen=True, slots=True)
class BoundTensor:
    """Leaf that is fed a resident tensor, with the type the tensor had when the model was stored."""

    node: int
    tensor_id: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """Stored model, parsed from its record."""

    name: str
    etag: str
    graph_id: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    bound: Sequence[BoundTensor]
    description: str = ""

    @classmethod
    def parse(cls, record: bytes) -> Self:
        """Parse a model from its record."""
        fields: dict[str, Any] = orjson.loads(record)
        return cls(
            fields["name"],
            fields["etag"],
            fields["graph_id"],
            tuple(map(_port, fields["inputs"])),
            tuple(map(_port, fields["outputs"])),
            [
                BoundTensor(tensor["node"], tensor["tensor_id"], tensor["dtype"], tuple(tensor["shape"]))
                for tensor in fields["bound"]
            ],
            fields.get("description", ""),
        )

    @property
    def is_free(self) -> bool:
        """Whether an input or output has free extents."""
        return any(port.is_free for port in (*self.inputs, *self.outputs))

    def require_real(self) -> None:
        """Raise Refusal if an input or output is complex, which other protocols do not support."""
        for port in (*self.inputs, *self.outputs):
            if is_complex(np.dtype(port.dtype)):
                finding = (
                    f"the model “{self.name}” has complex inputs or outputs, such as “{port.name}” of {port.dtype}"
                )
                advice = "this protocol does not support them: call /v1/forward and /v1/gradients"
                raise Refusal("dtype_mismatch", f"{finding}; {advice}", expected="real numbers", got=port.dtype)

    def feeds(self, tensors: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Build the feeds of a request from tensors by input name, and add the bound tensors."""
        ports = {port.name: port for port in self.inputs}
        input_feeds = ({"node": ports[name].node, "tensor": tensor} for name, tensor in tensors.items())
        return [*input_feeds, *({"node": bound.node, "tensor_id": bound.tensor_id} for bound in self.bound)]

    def require_bound(self, find: FindTensor) -> None:
        """Raise Refusal (shape_mismatch, dtype_mismatch) unless each bound tensor still has its recorded type.

        A missing tensor is reported by the call that it is fed to.
        """
        for bound in self.bound:
            version = find(bound.tensor_id)
            if version is None:
                continue
            array = version.array
            if dtype_name(array.dtype) != bound.dtype:
                raise self._changed_type(bound, "dtype_mismatch", bound.dtype, dtype_name(array.dtype))
            if array.shape != bound.shape:
                raise self._changed_type(bound, "shape_mismatch", f"{list(bound.shape)}", f"{list(array.shape)}")

    def _changed_type(self, bound: BoundTensor, code: str, expected: str, got: str) -> Refusal:
        original = f"but was {expected} when the model “{self.name}” was stored"
        detail = f"node {bound.node}: the resident tensor “{bound.tensor_id}” is {got}, {original}"
        return Refusal(code, detail, node=bound.node, expected=expected, got=got)


def _port(fields: dict[str, Any]) -> Port:
    return Port(fields["name"], fields["node"], fields["dtype"], tuple(fields["shape"]))
