"""Resident tensors in messages: versions that requests read, feeds of rows, and results that are stored."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, NamedTuple

from engine import HostArray, printable
from engine.ir.tensor_type import dtype_name
from schemas import Feed, StoreEntry
from service.core.errors import Refusal
from service.store.tables import checked_name
from service.store.writes import Stored

_CONDITION: Final = re.compile(r"|\*|[0-9a-f]{16}")
_EXPECTED: Final = "an etag of 16 hexadecimal digits, * or empty"


class ResidentFeed(NamedTuple):
    """Name of a resident tensor, and whether only some rows of it are fed."""

    name: str
    is_cut: bool


def fed_rows(array: HostArray, one: Feed, role: str, i: int) -> HostArray:
    """Return the rows that a feed states, as a view. Raises Refusal for invalid rows."""
    rows = one["rows"]
    if len(rows) != 2:
        raise rows_refusal(one, role, i, "two whole numbers, start and stop", f"{len(rows)} of them")
    if not array.ndim:
        raise rows_refusal(one, role, i, "absent for a tensor that is 0-d", _listed(rows))
    start, stop = rows
    if not 0 <= start <= stop <= array.shape[0]:
        expected = f"within 0 to {array.shape[0]}, the start no greater than the stop"
        raise rows_refusal(one, role, i, expected, _listed(rows))
    return array[start:stop]


def rows_from(array: HostArray, start: int, count: int) -> HostArray | None:
    """Return `count` rows from `start`, as a view; None if the tensor has fewer."""
    if not array.ndim or not 0 <= start <= start + count <= array.shape[0]:
        return None
    return array[start : start + count]


def is_span(rows: Any) -> bool:
    """Return whether this is a span of rows: two whole numbers in order."""
    return type(rows) is list and len(rows) == 2 and all(type(row) is int for row in rows) and 0 <= rows[0] <= rows[1]


def rows_refusal(one: Feed, role: str, i: int, expected: str, got: str) -> Refusal:
    """Return the refusal of invalid rows."""
    node = one["node"]
    detail = f"node {node}: {role}[{i}].rows must be {expected}, but is {got}"
    return Refusal("invalid_field", detail, node=node, expected=expected, got=got, pointer=f"/{role}/{i}/rows")


def _listed(rows: list[int]) -> str:
    return "[" + ", ".join(map(str, rows)) + "]"


class Version(NamedTuple):
    """One version of a resident tensor: its etag, and its read-only elements."""

    etag: str
    array: HostArray


#: (name) → its version, or None if it is unknown
Find = Callable[[str], Version | None]


class Kept(NamedTuple):
    """A tensor to be kept, and its entry in the answer."""

    stored: Stored
    told: dict[str, Any]
    array: HostArray


@dataclass(frozen=True, slots=True)
class Destination:
    """Name under which the value of a node, or the gradient with respect to it, is kept, and the condition for that."""

    node: int
    name: str
    if_match: str | None
    durable: bool
    is_gradient: bool = False

    @property
    def source(self) -> tuple[bool, int]:
        """The value or gradient that is kept; destinations may share one."""
        return self.is_gradient, self.node


class Storing:
    """Destinations of one request. Those that are not durable are on disk within `written_within_ms` milliseconds."""

    __slots__ = ("places", "sources", "written_within_ms")

    def __init__(self, places: Sequence[Destination], written_within_ms: int) -> None:
        self.places = places
        self.written_within_ms = written_within_ms
        #: each once: values, then gradients
        self.sources = sources_of(places)

    def kept(self, arrays: Sequence[HostArray], conditions: Sequence[str | None] | None = None) -> list[Kept]:
        """Make new versions of `sources`, which are these arrays; a cached request may have other `conditions`."""
        values = dict(zip(self.sources, arrays, strict=True))
        stated = [place.if_match for place in self.places] if conditions is None else conditions
        return [self._kept(place, values[place.source], c) for place, c in zip(self.places, stated, strict=True)]

    def _kept(self, place: Destination, array: HostArray, condition: str | None) -> Kept:
        etag = new_etag()
        stored = Stored(place.name, etag, dtype_name(array.dtype), array.shape, condition, place.durable)
        told: dict[str, Any] = {"node": place.node, "tensor_id": place.name, "etag": etag, "durable": place.durable}
        if not place.durable:
            told["written_within_ms"] = self.written_within_ms
        return Kept(stored, told, array)


def sources_of(places: Sequence[Destination]) -> tuple[tuple[bool, int], ...]:
    """List the sources of these destinations, each once: values of nodes, then gradients."""
    return tuple(sorted(dict.fromkeys(place.source for place in places), key=itemgetter(0)))


def check_gradients(places: Sequence[Destination], by: Collection[int]) -> None:
    """Raise Refusal for a gradient to be kept that the call does not compute."""
    for i, place in enumerate(places):
        if place.is_gradient and place.node not in by:
            node, expected, pointer = place.node, "a node of wrt, of a call that differentiates", f"/store/{i}/gradient"
            why = "no gradients come of this call" if not by else "there is one by each node of wrt alone"
            detail = f"node {node}: store[{i}].gradient asks for the gradient by this node, but {why}"
            raise Refusal("invalid_field", detail, node=node, expected=expected, got=f"node {node}", pointer=pointer)


def new_etag() -> str:
    """Make an etag that no other version has."""
    return os.urandom(8).hex()


def is_condition(value: object) -> bool:
    """Return whether this is a valid `if_match`."""
    return type(value) is str and _CONDITION.fullmatch(value) is not None


def read_places(fields: Mapping[str, Any]) -> tuple[Destination, ...]:
    """Read the entries of `store`. Raises Refusal (invalid_field)."""
    listed: Sequence[StoreEntry] = fields.get("store", [])
    places = tuple(_place(one, i) for i, one in enumerate(listed))
    seen: set[str] = set()
    for i, place in enumerate(places):
        if place.name in seen:
            detail, pointer = f"store names the tensor “{place.name}” twice", f"/store/{i}/tensor_id"
            expected, got = "each tensor once", "two values for one"
            raise Refusal("invalid_field", detail, node=place.node, expected=expected, got=got, pointer=pointer)
        seen.add(place.name)
    return places


def _place(one: StoreEntry, i: int) -> Destination:
    node, condition = one["node"], one.get("if_match")
    name = checked_name(one["tensor_id"], f"store[{i}].tensor_id", f"/store/{i}/tensor_id", node)
    if condition is not None and not is_condition(condition):
        got, pointer = f"“{printable(condition)}”", f"/store/{i}/if_match"
        detail = f"node {node}: store[{i}].if_match must be {_EXPECTED}, but is {got}"
        raise Refusal("invalid_field", detail, node=node, expected=_EXPECTED, got=got, pointer=pointer)
    return Destination(node, name, condition, one.get("durable", True), one.get("gradient", False))
