"""Templates: fast paths for requests and answers that come again with other numbers, as in a training loop.

A request is split into its numbers and the rest, its *shape*, by which a worker finds the plan, and everything that it
has validated before:

    {"graph": …, "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [2], "data": [1.5, 2.0]}}]}
    shape   {"graph": …, "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [2]}}]}
    data    [("data", [1.5, 2.0])]

The conditions of `store` are numbers, too: a client that writes a tensor again and again states another etag each time.
The template of an answer is its text, cut at the elements of its tensors; `fill` puts new elements in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product, starmap
from typing import Any, Final, Self, get_args

import numpy as np
import orjson

from engine import HostArray, Label, TensorType
from engine.ir.run_report import PRECISIONS, RunReport, RunTier
from engine.ir.tensor_type import dtype_name
from service.api.answers import AnswerBody, RunStats, result_fields
from service.api.residents import is_condition, is_span
from service.api.tensors import has_plain_numbers, numbers_of

#: most bytes of a shape that is cached
LONGEST_SHAPE: Final = 1 << 14
#: most bytes of the elements of an answer that is made from a template: beyond, the copies cost more than they save
MOST_ELEMENT_BYTES: Final = 1 << 16
_NO_DATA: Final = b'"data":[]'
_TIME: Final = b'"execute_ms":0.0,"tier":"uncompiled","precision":"float32"'
_REPORTS: Final = {
    report: f',"tier":"{report.tier}","precision":"{report.precision}"'.encode()
    for report in starmap(RunReport, product(get_args(RunTier), PRECISIONS))
}


class RequestTemplate:
    """Fields of a request without the data of its tensors.

    `shape` is the rest, as bytes: the same for requests that differ in data alone. It tells 1 from 1.0 and from true.
    `data` are the payloads, each with its field. Resident tensors have none; if rows of one are fed, `shape` has their
    number, and `starts` the first row, otherwise None. `conditions` are those of `store`.
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

        Data and conditions are taken out of `fields` until they are put back.
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
        if places:
            if type(places) is not list or not {dict}.issuperset(map(type, places)):
                return None
            if not all(is_condition(place["if_match"]) for place in places if "if_match" in place):
                return None
        template = cls(tensors, residents, places, fields)
        if template.shape is None:
            template.put_back()
            return None
        return template

    def put_back(self) -> None:
        """Restore the fields."""
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
    """Separate tensors from feeds of resident ones; None if there is anything else in the place of one."""
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


def _counted(resident: dict[str, Any]) -> list[int] | None:
    """Replace the rows of a feed by their number, and return them; None, and no change, if it has none."""
    rows: list[int] | None = resident.get("rows")
    if rows is None or not is_span(rows):
        return None
    start, stop = rows
    resident["rows"] = stop - start
    return [start, stop]


def _taken(tensor: dict[str, Any]) -> tuple[str | None, Any]:
    """Take out the payload of a tensor, with its field; None, and no change, if there are two payloads, or none."""
    name = "data" if "data" in tensor else "data_b64"
    if name not in tensor or (name == "data" and "data_b64" in tensor):
        return None, None
    return name, tensor.pop(name)


def _written(fields: Mapping[str, Any]) -> bytes | None:
    """Write the fields as bytes; None if they are too long, or have integers beyond 64 bits."""
    try:
        shape = orjson.dumps(fields)
    except TypeError:
        return None
    return shape if len(shape) <= LONGEST_SHAPE else None


class AnswerTemplate:
    """JSON answer without the elements of its tensors, the execution time, and the report of the run."""

    def __init__(self, parts: Sequence[bytes], *, plain: bool) -> None:
        """`parts` stand around the elements, each up to `"data":[`, and the last two around the time.

        `plain`: all tensors have plain numbers.
        """
        self._is_plain = plain
        self._texts = [text for part in parts for text in (part, b"")][:-1]

    @classmethod
    def of(
        cls,
        labels: Sequence[Label],
        types: Sequence[TensorType],
        disconnected: Sequence[int] | None,
        stats: RunStats,
    ) -> Self | None:
        """Make the template of answers of these types; None if elements may need another form, or are many."""
        if sum(t.nbytes for t in types) > MOST_ELEMENT_BYTES or any(t.dtype == np.int64 for t in types):
            return None
        empty = [{"tensor": {"dtype": dtype_name(t.dtype), "shape": list(t.shape), "data": []}} for t in types]
        named = zip(labels, empty, strict=True)
        text = orjson.dumps(result_fields(named, disconnected, stats.after(0.0, RunReport())))
        first, *rest = text.split(_NO_DATA)
        before, _, after = rest[-1].partition(_TIME)
        around = [first, *(b"]" + part for part in (*rest[:-1], before))]
        parts = [*(part + b'"data":[' for part in around[:-1]), around[-1] + b'"execute_ms":', after]
        return cls(parts, plain=all(map(has_plain_numbers, types)))

    @property
    def nbytes(self) -> int:
        """Bytes of the text."""
        return sum(map(len, self._texts))

    def fill(
        self,
        arrays: Sequence[HostArray],
        execute_ms: float,
        report: RunReport,
        stored: Sequence[Mapping[str, Any]] = (),
    ) -> AnswerBody | None:
        """Write the answer with these elements, and the `stored` tensors; None if an element is not finite."""
        flat = [array.reshape(-1) for array in arrays] if self._is_plain else list(map(numbers_of, arrays))
        elements = orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY)
        if b"n" in elements:  # null
            return None
        texts = self._texts.copy()
        texts[1:-2:2] = elements[2:-2].split(b"],[")
        texts[-2] = orjson.dumps(execute_ms) + _REPORTS[report]
        if stored:
            texts[-1] = b"".join((texts[-1][:-1], b',"stored":', orjson.dumps(stored), b"}"))
        return [b"".join(texts)]
