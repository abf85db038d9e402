"""Templates of requests and answers that come again with other numbers.

The shape of a request decides all but numbers; the data of its tensors are the numbers. So are the conditions upon
which it keeps tensors: a client that writes one again and again states another each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import orjson

from service.wire.resident_feed import is_span
from service.wire.storing import is_condition

#: bytes of a shape that is worth remembering
LONGEST_SHAPE: Final = 1 << 14


class RequestTemplate:
    """The fields of a request without the data of the tensors in some of them.

    `shape` is the rest, as bytes: the same for requests that differ in data alone. It tells 1 from 1.0 and from true.
    `data` are the payloads, each with its name; resident tensors have none, and stay where they are. Of the rows
    of one, `shape` has how many they are, and `starts` the first, None where it is whole. `conditions` are those of
    `store`.
    """

    __slots__ = ("_places", "_residents", "_rows", "_tensors", "conditions", "data", "shape", "starts")

    def __init__(
        self,
        tensors: Sequence[dict[str, Any]],
        residents: Sequence[dict[str, Any]],
        places: Sequence[dict[str, Any]],
        fields: Mapping[str, Any],
    ) -> None:
        self._tensors = tensors
        self._residents = residents
        self._places = places
        self._rows = [_counted(resident) for resident in residents] if residents else ()
        self.starts = [None if rows is None else rows[0] for rows in self._rows] if residents else ()
        self.data = [_taken(tensor) for tensor in tensors]
        self.conditions: Sequence[str | None] = [place.pop("if_match", None) for place in places] if places else ()
        self.shape = _written(fields)

    @classmethod
    def of(cls, fields: Mapping[str, Any], names: Sequence[str]) -> Self | None:
        """Split the fields of these names; None if one is neither a tensor nor a list of tensors of nodes.

        The data and conditions are out of `fields` until they are put back.
        """
        tensors: list[Any] = []
        for name in names:
            part = fields.get(name)
            if type(part) is list:
                tensors += [entry.get("tensor") if type(entry) is dict else None for entry in part]
            elif part is not None:
                tensors.append(part)
        residents: list[dict[str, Any]] = []
        if not {dict}.issuperset(map(type, tensors)):
            parted = _parted(fields, names)
            if parted is None:
                return None
            tensors, residents = parted
        places = fields.get("store", ())
        if places and not _are_places(places):
            return None
        template = cls(tensors, residents, places, fields)
        if template.shape is None:
            template.put_back()
            return None
        return template

    def put_back(self) -> None:
        """Make the fields what they were."""
        for tensor, (name, data) in zip(self._tensors, self.data, strict=True):
            if name is not None:
                tensor[name] = data
        for resident, rows in zip(self._residents, self._rows, strict=True):
            if rows is not None:
                resident["rows"] = rows
        if self._places:
            for place, condition in zip(self._places, self.conditions, strict=True):
                if condition is not None:
                    place["if_match"] = condition


def _parted(
    fields: Mapping[str, Any], names: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]] | None:
    """The tensors that came, and the feeds of resident ones; None where anything else stands in the place of one."""
    tensors: list[Any] = []
    residents: list[dict[str, Any]] = []
    for name in names:
        part = fields.get(name)
        entries = part if type(part) is list else [] if part is None else [{"tensor": part}]
        for entry in entries:
            if type(entry) is not dict:
                return None
            if "tensor" in entry or type(entry.get("tensor_id")) is not str:
                tensors.append(entry.get("tensor"))
            else:
                residents.append(entry)
    return (tensors, residents) if {dict}.issuperset(map(type, tensors)) else None


def _are_places(places: Any) -> bool:
    """Tell whether conditions can be taken out of the entries of `store`."""
    if type(places) is not list or not {dict}.issuperset(map(type, places)):
        return False
    return all(is_condition(place["if_match"]) for place in places if "if_match" in place)


def _counted(resident: dict[str, Any]) -> list[int] | None:
    """The rows of a feed, of which it has the number alone from now on; None, and nothing done, where it has none."""
    rows: list[int] | None = resident.get("rows")
    if rows is None or not is_span(rows):
        return None
    start, stop = rows
    resident["rows"] = stop - start
    return [start, stop]


def _taken(tensor: dict[str, Any]) -> tuple[str | None, Any]:
    """The payload of a tensor, and what it is called.

    None, and nothing taken, where there are two, of which one may be meant, or none.
    """
    name = "data" if "data" in tensor else "data_b64"
    if name not in tensor or (name == "data" and "data_b64" in tensor):
        return None, None
    return name, tensor.pop(name)


def _written(fields: Mapping[str, Any]) -> bytes | None:
    """The fields as bytes; None for whole numbers beyond 64 bits, which they cannot be written with."""
    try:
        shape = orjson.dumps(fields)
    except TypeError:
        return None
    return shape if len(shape) <= LONGEST_SHAPE else None
