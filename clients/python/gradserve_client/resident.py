"""Tensors that stay with the server, under a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from gradserve_client.tensors import Array


@dataclass(frozen=True)
class Resident:
    """A version of a resident tensor, which may stand wherever a call takes an array.

    A call reads the version that is there when it comes: `etag` says which one this was, for conditions. What the
    server did not say is None: dtype, shape and bytes are known of what is put and listed, not of what is stored.
    """

    name: str
    etag: str
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    nbytes: int | None = None
    durable: bool | None = None
    written_within_ms: int | None = None

    def rows(self, start: int, stop: int) -> Rows:
        """The part of it from start to before stop on its leading axis, which may stand where it may."""
        return Rows(self.name, start, stop)

    @classmethod
    def from_wire(cls, stated: Mapping[str, Any]) -> Resident:
        """What an answer says of a tensor."""
        return cls(
            name=stated["tensor_id"],
            etag=stated["etag"],
            dtype=stated.get("dtype"),
            shape=tuple(stated["shape"]) if "shape" in stated else None,
            nbytes=stated.get("bytes"),
            durable=stated.get("durable"),
            written_within_ms=stated.get("written_within_ms"),
        )


class Rows(NamedTuple):
    """Part of a resident tensor: what lies from `start` to before `stop` on its leading axis."""

    name: str
    start: int
    stop: int


class ResidentTensor(NamedTuple):
    """A resident tensor with its elements."""

    handle: Resident
    array: Array


@dataclass(frozen=True)
class Store:
    """Under which name a call is to keep the value of a node, or the gradient by it, and on what condition.

    `if_match` is the etag that the tensor must have now, "*" where any will do, "" where there must be none. Where
    `durable` is false, it is on disk some time after the answer.
    """

    name: str
    if_match: str | None = None
    durable: bool | None = None
    gradient: bool | None = None

    def to_wire(self, node: int) -> dict[str, Any]:
        """As a request has it."""
        stated = {"if_match": self.if_match, "durable": self.durable, "gradient": self.gradient}
        return {"node": node, "tensor_id": self.name, **{k: v for k, v in stated.items() if v is not None}}


def name_of(tensor: Resident | str) -> str:
    """The name of a tensor, or the name itself."""
    return tensor.name if isinstance(tensor, Resident) else tensor


class Version(Protocol):
    """A version of something that the server keeps."""

    @property
    def etag(self) -> str:
        """Which one it is."""


def etag_of(version: Version | str) -> str:
    """The etag of a version, or the etag itself, or "*"."""
    return version if isinstance(version, str) else version.etag
