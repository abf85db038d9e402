"""Resident tensors in messages: versions that requests read, feeds of them, and results that are stored as them."""

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


class ResidentFeed(NamedTuple):
    """The name of a resident tensor, and whether rows of it are fed, and not all."""

    name: str
    is_cut: bool


def fed_rows(array: HostArray, one: Feed, role: str, i: int) -> HostArray:
    """The rows that a feed states, as a view. Raises Refusal where it states no two whole numbers within the axis."""
    rows = one["rows"]
    if len(rows) != 2:
        raise rows_refusal(one, role, i, "two whole numbers, start and stop", f"{len(rows)} of them")
    if not array.ndim:
        raise rows_refusal(one, role, i, "absent for a tensor that is 0-d", _listed(rows))
    start, stop = rows
    if not 0 <= start <= stop <= array.shape[0]:
        wanted = f"within 0 to {array.shape[0]}, the start no greater than the stop"
        raise rows_refusal(one, role, i, wanted, _listed(rows))
    return array[start:stop]


def rows_from(array: HostArray, start: int, count: int) -> HostArray | None:
    """Return `count` rows from `start`, as a view; None if the tensor has fewer."""
    if not array.ndim or not 0 <= start <= start + count <= array.shape[0]:
        return None
    return array[start : start + count]


def is_span(rows: Any) -> bool:
    """Tell whether this is a span of rows: two whole numbers in order."""
    return type(rows) is list and len(rows) == 2 and all(type(row) is int for row in rows) and 0 <= rows[0] <= rows[1]


def rows_refusal(one: Feed, role: str, i: int, wanted: str, got: str) -> Refusal:
    """The report of rows that are not what they have to be."""
    node = one["node"]
    detail = f"node {node}: {role}[{i}].rows must be {wanted}, but is {got}"
    return Refusal("invalid_field", detail, node=node, expected=wanted, got=got, pointer=f"/{role}/{i}/rows")


def _listed(rows: list[int]) -> str:
    return "[" + ", ".join(map(str, rows)) + "]"


# A version of a resident tensor, as requests read it.


class Version(NamedTuple):
    """One version of a tensor: its etag, and its elements, which nobody writes."""

    etag: str
    array: HostArray


#: the version that is known under a name, None for none
Find = Callable[[str], Version | None]


# `store`: nodes of a request whose values are stored as resident tensors, and the answer's report of them.

_CONDITION: Final = re.compile(r"|\*|[0-9a-f]{16}")
_EXPECTED: Final = "an etag of 16 hexadecimal digits, * or empty"


class Kept(NamedTuple):
    """A tensor that is to be kept, and what the answer says of it."""

    stored: Stored
    told: dict[str, Any]
    array: HostArray


@dataclass(frozen=True, slots=True)
class Destination:
    """Place where the value of a node goes, or the `is_gradient` by it, and the condition for it."""

    node: int
    name: str
    if_match: str | None
    durable: bool
    is_gradient: bool = False

    @property
    def source(self) -> tuple[bool, int]:
        """The value or gradient that goes there; places may share one."""
        return self.is_gradient, self.node


class Storing:
    """The places of one request. What is not durable is on disk within `written_within_ms` milliseconds."""

    __slots__ = ("places", "sources", "written_within_ms")

    def __init__(self, places: Sequence[Destination], written_within_ms: int) -> None:
        self.places = places
        self.written_within_ms = written_within_ms
        #: what is kept, each once: values, then gradients
        self.sources = sources_of(places)

    def kept(self, arrays: Sequence[HostArray], conditions: Sequence[str | None] | None = None) -> list[Kept]:
        """New versions of `sources`, which are these; upon other `conditions`, where it came again with those."""
        values = dict(zip(self.sources, arrays, strict=True))
        stated = [place.if_match for place in self.places] if conditions is None else conditions
        return [self._kept(place, values[place.source], c) for place, c in zip(self.places, stated, strict=True)]

    def _kept(self, place: Destination, array: HostArray, condition: str | None) -> Kept:
        etag = new_etag()
        stored = Stored(place.name, etag, dtype_name(array.dtype), array.shape, condition, place.durable)
        told: dict[str, Any] = {
            "node": place.node,
            "tensor_id": place.name,
            "etag": etag,
            "durable": place.durable,
        }
        if not place.durable:
            told["written_within_ms"] = self.written_within_ms
        return Kept(stored, told, array)


def sources_of(places: Sequence[Destination]) -> tuple[tuple[bool, int], ...]:
    """List the sources of these places, each once: values of nodes, then gradients."""
    return tuple(sorted(dict.fromkeys(place.source for place in places), key=itemgetter(0)))


def check_gradients(places: Sequence[Destination], by: Collection[int]) -> None:
    """Refuse a gradient that is to be kept, where none is made by its node."""
    for i, place in enumerate(places):
        if place.is_gradient and place.node not in by:
            why = "no gradients come of this call" if not by else "there is one by each node of wrt alone"
            raise Refusal(
                "invalid_field",
                f"node {place.node}: store[{i}].gradient asks for the gradient by this node, but {why}",
                node=place.node,
                expected="a node of wrt, of a call that differentiates",
                got=f"node {place.node}",
                pointer=f"/store/{i}/gradient",
            )


def new_etag() -> str:
    """One that no other version has."""
    return os.urandom(8).hex()


def is_condition(value: object) -> bool:
    """Tell whether this is a valid `if_match`."""
    return type(value) is str and _CONDITION.fullmatch(value) is not None


def read_places(fields: Mapping[str, Any]) -> tuple[Destination, ...]:
    """The places that a request names. Raises Refusal: invalid_field."""
    listed: Sequence[StoreEntry] = fields.get("store", [])
    places = tuple(_place(one, i) for i, one in enumerate(listed))
    seen: set[str] = set()
    for i, place in enumerate(places):
        if place.name in seen:
            raise _twice(place, i)
        seen.add(place.name)
    return places


def _place(one: StoreEntry, i: int) -> Destination:
    node, condition = one["node"], one.get("if_match")
    name = checked_name(one["tensor_id"], f"store[{i}].tensor_id", f"/store/{i}/tensor_id", node)
    if condition is not None and not is_condition(condition):
        got = f"“{printable(condition)}”"
        raise Refusal(
            "invalid_field",
            f"node {node}: store[{i}].if_match must be {_EXPECTED}, but is {got}",
            node=node,
            expected=_EXPECTED,
            got=got,
            pointer=f"/store/{i}/if_match",
        )
    return Destination(node, name, condition, one.get("durable", True), one.get("gradient", False))


def _twice(place: Destination, i: int) -> Refusal:
    return Refusal(
        "invalid_field",
        f"store names the tensor “{place.name}” twice",
        node=place.node,
        expected="each tensor once",
        got="two values for one",
        pointer=f"/store/{i}/tensor_id",
    )
