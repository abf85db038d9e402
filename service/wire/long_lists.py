"""Long lists of numbers in JSON: read chunk by chunk into an array, so that no number is an object for long.

Only lists that have nothing but numbers are taken, and of these only the data of tensors. Where anything is odd,
nothing is taken, and the text is read as any other: what is said of it is said by one reader.
"""

from __future__ import annotations

import secrets
from array import array as integers
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

import numpy as np
import orjson

from engine import HostArray
from service.errors import Refusal
from service.wire.json_codec import BYTES_OF_A_PART, parse_json

#: bytes of a body, and of a list in it, that are worth it
LONG_BODY: Final = 1 << 20
LONG_LIST: Final = 1 << 18
#: bytes of a chunk, about: its numbers stay in the processor's caches until they are in the array
_NUMBERS_CHUNK: Final = 1 << 17
_OF_NUMBERS: Final = b"0123456789+-.eE, \t\r\n"
_OF_FRACTIONS: Final = (b".", b"e", b"E")
#: begins what stands in the place of a list: drawn at each start, so that no request says it
_LIST_STUB: Final = secrets.token_hex(16)


class LongList:
    """The numbers of a list in JSON: int64 where none is written with a point or an exponent, else float64."""

    def __init__(self, array: HostArray, text: bytes, start: int, stop: int) -> None:
        """The list stands in `text` from `start` to `stop`, without its brackets."""
        self.array = array
        self._place = text, start, stop

    def __len__(self) -> int:
        return len(self.array)

    @property
    def is_whole(self) -> bool:
        """Tell whether every number is written as a whole number."""
        return bool(self.array.dtype == np.int64)

    def numbers(self) -> list[int | float]:
        """Parse the list again: whole numbers as int, others as float."""
        text, start, stop = self._place
        found: list[int | float] = parse_json(b'{"data":[%b]}' % text[start:stop], 2)["data"]
        return found


class WithoutLists(NamedTuple):
    """A text in which each long list has one string, its stub, in place of the numbers; and the lists, by that."""

    text: bytes
    lists: dict[str, LongList]

    @classmethod
    def of(cls, body: bytes) -> Self | None:
        """A text without its long lists; None where it has none, and where one has something else than numbers."""
        if len(body) < LONG_BODY or body.count(b"]") * BYTES_OF_A_PART > len(body):
            return None
        parts, lists, end = list[bytes](), dict[str, LongList](), 0
        for start, stop in _innermost(body):
            if stop - start < LONG_LIST:
                continue
            numbers = _numbers(body, start, stop)
            if numbers is None:
                return None
            stub = f"{_LIST_STUB}{len(lists)}"
            lists[stub] = LongList(numbers, body, start, stop)
            parts += body[end:start], b'"%b"' % stub.encode()
            end = stop
        return cls(b"".join((*parts, body[end:])), lists) if lists else None

    def put_into(self, fields: Mapping[str, Any]) -> bool:
        """Give the tensors of a request their lists; False where one was no tensor's, and the request is of no use."""
        left = dict(self.lists)
        for tensor in _tensors(fields):
            data = tensor.get("data")
            if type(data) is list and len(data) == 1 and type(data[0]) is str and data[0] in left:
                tensor["data"] = left.pop(data[0])
        return not left


def parse_tensors(body: bytes, max_depth: int) -> dict[str, Any]:
    """Parse JSON like `parse_json`; the data of tensors may be a `LongList`."""
    without = WithoutLists.of(body)
    if without is not None:
        with suppress(Refusal):
            fields = parse_json(without.text, max_depth)
            if without.put_into(fields):
                return fields
    return parse_json(body, max_depth)


def _innermost(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each innermost list; text inside a string may look like one."""
    before, stop = 0, body.find(b"]")
    while stop >= 0:
        start = body.rfind(b"[", before, stop)
        if start >= 0:
            yield start + 1, stop
        before, stop = stop + 1, body.find(b"]", stop + 1)


def _numbers(body: bytes, start: int, stop: int) -> HostArray | None:
    """The numbers between; None where anything else is there, and where int64 and float64 do not hold them."""
    has_fractions = any(body.find(part, start, stop) >= 0 for part in _OF_FRACTIONS)
    found = np.empty(body.count(b",", start, stop) + 1, np.float64 if has_fractions else np.int64)
    place = 0
    for chunk in _chunks(body, start, stop):
        if chunk.translate(None, _OF_NUMBERS):
            return None
        try:
            said = orjson.loads(b"[%b]" % chunk)
            read = np.fromiter(said, np.float64, len(said)) if has_fractions else integers("q", said)
        except (ValueError, TypeError, OverflowError):
            return None  # no JSON; or, of what is written without a fraction, beyond 64 bits
        if not said:
            return None  # nothing between two commas
        found[place : place + len(said)] = read
        place += len(said)
    return found


def _chunks(body: bytes, start: int, stop: int) -> Iterator[bytes]:
    """The text between, cut at commas."""
    while (cut := body.find(b",", min(start + _NUMBERS_CHUNK, stop), stop)) >= 0:
        yield body[start:cut]
        start = cut + 1
    yield body[start:stop]


def _tensors(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every object that may be a tensor: the request itself, its fields, and those in lists of feeds."""
    for part in (fields, *fields.values()):
        if type(part) is dict:
            yield part
        for entry in part if type(part) is list else ():
            if type(entry) is dict and type(entry.get("tensor")) is dict:
                yield entry["tensor"]
