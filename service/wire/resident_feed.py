"""Resident tensors in messages: versions that requests read, feeds of them, and results that are stored as them."""

from __future__ import annotations

from typing import Any, NamedTuple

from engine import HostArray
from schemas import Feed
from service.errors import Refusal


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
