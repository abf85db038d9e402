"""Resident tensors: tensors that are stored on the server under a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from gradserve_client.tensors import Array


@dataclass(frozen=True)
class Resident:
    """A handle of one version of a resident tensor, accepted in place of an array.

    A call reads the version that is stored when it runs; `etag` identifies the version of the handle, for conditions.
    `nbytes` is the size of the elements in bytes. Fields that the server did not report are None: dtype, shape and size
    are known for tensors that were put or listed, not for tensors that a call stored. If the tensor is not on disk yet,
    `written_within_ms` is the time, in milliseconds, within which it will be.
    """

    name: str
    etag: str
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    nbytes: int | None = None
    durable: bool | None = None
    written_within_ms: int | None = None

    def rows(self, start: int, stop: int) -> Rows:
        """Return rows `start` to `stop` (exclusive) of the leading axis, accepted in place of an array."""
        return Rows(self.name, start, stop)

    @classmethod
    def from_wire(cls, entry: Mapping[str, Any]) -> Resident:
        """Read a handle from a response."""
        return cls(
            name=entry["tensor_id"],
            etag=entry["etag"],
            dtype=entry.get("dtype"),
            shape=tuple(entry["shape"]) if "shape" in entry else None,
            nbytes=entry.get("bytes"),
            durable=entry.get("durable"),
            written_within_ms=entry.get("written_within_ms"),
        )


class Rows(NamedTuple):
    """Rows `start` to `stop` (exclusive) of a resident tensor, along its leading axis."""

    name: str
    start: int
    stop: int


class ResidentTensor(NamedTuple):
    """A resident tensor with its elements: the handle, and a NumPy array."""

    handle: Resident
    array: Array


@dataclass(frozen=True)
class Store:
    """The tensor that a call stores: the value of a node, or with `gradient=True` the gradient with respect to it.

    `if_match` is the etag that the tensor must have now ("*": any; "": it must not exist). With `durable=False`, the
    server may respond before the tensor is on disk.
    """

    name: str
    if_match: str | None = None
    durable: bool | None = None
    gradient: bool | None = None

    def to_wire(self, node: int) -> dict[str, Any]:
        """Return the entry of a request that stores this node."""
        options = {"if_match": self.if_match, "durable": self.durable, "gradient": self.gradient}
        return {"node": node, "tensor_id": self.name, **{k: v for k, v in options.items() if v is not None}}


def name_of(tensor: Resident | str) -> str:
    """Return the name of a tensor that is given as a handle or by name."""
    return tensor.name if isinstance(tensor, Resident) else tensor


class Version(Protocol):
    """A version of an object that is stored on the server."""

    @property
    def etag(self) -> str:
        """The identifier of the version."""


def etag_of(version: Version | str) -> str:
    """Return the etag of a version; an etag, or "*", is returned as it is."""
    return version if isinstance(version, str) else version.etag
