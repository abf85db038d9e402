"""Strict JSON parser: no duplicate keys, no NaN, no deep nesting, exact integers; a field that is null is absent.

A text is checked before it is parsed: a few megabytes of brackets would become a hundred times as many bytes of Python
objects. `_levels` computes the nesting of all brackets outside of strings with NumPy, chunk by chunk, so that
`parse_json` refuses a text at the first chunk that is too deep, or has too many lists and objects.

Long lists of numbers in a long body, such as the data of a large tensor, would become a Python object for each number.
`parse_tensors` reads them into arrays instead:

    {"tensor": {"shape": [1000000], "data": [0.5, 1.5, …]}}      → find innermost lists that are long, and only numbers
    {"tensor": {"shape": [1000000], "data": ["9f…0"]}}           → replace each by a stub, a string that is random
                                                                   for each process, and parse the short text
    {"tensor": {"shape": [1000000], "data": LongList(array)}}    → replace the stubs by the arrays

Only data of tensors is read like this. If anything is unusual, the whole text is parsed like any other, so that errors
are always reported by one parser.
"""

from __future__ import annotations

import re
import secrets
from array import array as integers
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

import jiter
import numpy as np
import orjson

from engine import HostArray, printable
from service.core.budget import OBJECT_BYTES_PER_JSON_BYTE
from service.core.errors import Refusal

_CHUNK: Final = 1 << 17
_COMMA: Final = ord(",")
_LIST: Final = ord("[")
_OBJECT: Final = ord("{")
_BRACKETS: Final = b"[]{}"
#: change of depth by byte, as int8
_STEPS: Final = bytes({"[": 1, "{": 1, "]": 255, "}": 255}.get(chr(code), 0) for code in range(256))
#: least bytes per list or object of a long body at which finding them before parsing pays
BYTES_OF_A_PART: Final = 8000
#: bytes of a list and of an object in Python, with their entry in another one; an object includes its first key
_LIST_BYTES: Final = 96
_OBJECT_BYTES: Final = 224
#: bytes of lists and objects that are allowed for any body
_FREE_BYTES: Final = 64 << 20
#: name of the exception of Rust libraries that run out of memory; a BaseException, with a type per library
_RUST_PANIC: Final = "PanicException"
_DUPLICATE: Final = re.compile(r'Detected duplicate key "(.*)" (at line .*)', re.DOTALL)
#: least bytes of a body, and of a list in it, for reading the list into an array
LONG_BODY: Final = 1 << 20
LONG_LIST: Final = 1 << 18
#: approximate bytes of a chunk, whose numbers stay in the processor's caches until they are in the array
_NUMBERS_CHUNK: Final = 1 << 17
_NUMBER_BYTES: Final = b"0123456789+-.eE, \t\r\n"
_FRACTION_BYTES: Final = (b".", b"e", b"E")
#: prefix of stubs: random, so that no request contains it
_LIST_STUB: Final = secrets.token_hex(16)


def parse_json(body: bytes, max_depth: int, subject: str = "the body") -> dict[str, Any]:
    """Parse a JSON object; errors call it `subject`.

    Raises Refusal: invalid_json, duplicate_key, too_deep, over_budget, invalid_field; MemoryError.
    """
    value = parse_value(body, max_depth, subject)
    if not isinstance(value, dict):
        got = json_kind(value)
        detail = f"{subject} must be a JSON object, but is {got}"
        raise Refusal("invalid_field", detail, expected="an object", got=got, pointer="")
    return value


def parse_value(body: bytes, max_depth: int, subject: str) -> object:
    """Parse a JSON value, without fields that are null. Raises Refusal, as `parse_json` does, and MemoryError."""
    if not body:
        raise Refusal("invalid_json", f"{subject} is empty; a JSON object is expected")
    if body.startswith(b"\xef\xbb\xbf"):
        raise Refusal("invalid_json", f"{subject} starts with a byte-order mark; send plain UTF-8")
    _check_structure(body, max_depth, subject)
    try:
        value: object = jiter.from_json(body, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise _refusal(body, str(error), subject) from None
    except BaseException as error:
        if type(error).__name__ == _RUST_PANIC:
            raise MemoryError from None
        raise
    if b"null" in body:
        _drop_nulls(value)
    return value


def _drop_nulls(value: object) -> None:
    """Remove the fields that are null from every object of a parsed text; nulls in lists stay."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            for name in [name for name, field in part.items() if field is None]:
                del part[name]
        fields = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        pending += [field for field in fields if isinstance(field, dict | list)]


def json_kind(value: object) -> str:
    """Return the name of a parsed value's JSON type."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    names = {
        int: "a whole number",
        float: "a number with a decimal point",
        str: "a string",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "something else")


def elements(array: bytes) -> int:
    """Count the elements of a JSON array without creating them: an upper bound if it is malformed."""
    commas = 0
    for codes, depths in _levels(array, _BRACKETS + b","):
        commas += int(np.count_nonzero((codes == _COMMA) & (depths == 1)))
    return commas + 1 if array.strip()[1:-1].strip() else 0


def _check_structure(body: bytes, max_depth: int, subject: str) -> None:
    """Raise Refusal (too_deep, over_budget) for a text that is nested too deeply, or would become too many objects.

    The text is read chunk by chunk up to the first excess: refusing 60 MB of brackets costs as much as one chunk.
    """
    if not _has_more_brackets(body, max_depth):
        return
    limit = max(OBJECT_BYTES_PER_JSON_BYTE * len(body), _FREE_BYTES)
    lists = objects = 0
    for codes, depths in _levels(body, _BRACKETS):
        if depths.max(initial=0) > max_depth:
            detail = f"the JSON is nested more than {max_depth} levels deep"
            raise Refusal("too_deep", detail, expected=f"at most {max_depth} levels")
        lists += int(np.count_nonzero(codes == _LIST))
        objects += int(np.count_nonzero(codes == _OBJECT))
        nbytes = _LIST_BYTES * lists + _OBJECT_BYTES * objects
        if nbytes > limit:
            detail = (
                f"{subject} has more lists and objects than fit into {limit} bytes, the limit for a text of this length"
            )
            got = f"at least {nbytes} bytes, for {lists} lists and {objects} objects"
            raise Refusal("over_budget", detail, expected=f"at most {limit} bytes", got=got)


def _has_more_brackets(body: bytes, limit: int) -> bool:
    """Return whether a text has more than `limit` opening brackets, including those in strings."""
    count = 0
    for start in range(0, len(body), _CHUNK):
        count += body.count(b"[", start, start + _CHUNK) + body.count(b"{", start, start + _CHUNK)
        if count > limit:
            return True
    return False


def _levels(body: bytes, selected: bytes) -> Iterator[tuple[HostArray, HostArray]]:
    """Yield the `selected` bytes outside of strings, and the depth of each, chunk by chunk."""
    excluded = bytes(set(range(256)) - set(selected + b'"'))
    depth, start, in_string = 0, 0, False
    while start < len(body):
        chunk = body[start : start + _CHUNK]
        if b"\\" in chunk:
            if (len(chunk) - len(chunk.rstrip(b"\\"))) % 2:  # the escaped character comes next
                chunk = body[start : start + _CHUNK + 1]
            start += len(chunk)
            chunk = chunk.replace(b"\\\\", b"").replace(b'\\"', b"")
        else:
            start += len(chunk)
        # Two quotes in a row can be removed: either they are an empty string, or one ends and the next begins, with
        # nothing selected in between. Most texts have no quotes left then, since their strings contain no brackets.
        skeleton = chunk.translate(None, excluded).replace(b'""', b"")
        parts = (b'"' + skeleton if in_string else skeleton).split(b'"')
        in_string = len(parts) % 2 == 0
        outside = b"".join(parts[::2])
        depths = np.cumsum(np.frombuffer(outside.translate(_STEPS), np.int8), dtype=np.int64) + depth
        if outside:
            depth = int(depths[-1])
        yield np.frombuffer(outside, np.uint8), depths


def _refusal(body: bytes, reason: str, subject: str) -> Refusal:
    duplicate = _DUPLICATE.fullmatch(reason)
    if duplicate:
        key, place = printable(duplicate[1]), duplicate[2]
        return Refusal("duplicate_key", f"the key “{key}” appears twice in one JSON object, {place}", got=key)
    try:
        jiter.from_json(body, allow_inf_nan=True)
    except ValueError:
        advice = "; strings have double quotes in JSON" if reason.startswith("key must be a string") else ""
        return Refusal("invalid_json", f"{subject} is not JSON: {reason}{advice}")
    hint = "JSON has no NaN and no Infinity; send tensors that hold them as data_b64"
    return Refusal("invalid_json", f"{subject} is not JSON ({reason}): {hint}")


class LongList:
    """Numbers of a JSON list: int64 if none is written with a point or an exponent, otherwise float64."""

    def __init__(self, array: HostArray, text: bytes, start: int, stop: int) -> None:
        """`start` and `stop` are the position of the list in `text`, without its brackets."""
        self.array = array
        self._place = text, start, stop

    def __len__(self) -> int:
        return len(self.array)

    @property
    def is_whole(self) -> bool:
        """Whether every number is written as a whole number."""
        return bool(self.array.dtype == np.int64)

    def numbers(self) -> list[int | float]:
        """Parse the list again: whole numbers as int, others as float."""
        text, start, stop = self._place
        numbers: list[int | float] = parse_json(b'{"data":[%b]}' % text[start:stop], 2)["data"]
        return numbers


class ExtractedLists(NamedTuple):
    """Text in which a stub, a string, replaces the numbers of each long list; and the lists by their stubs."""

    text: bytes
    lists: dict[str, LongList]

    @classmethod
    def extract(cls, body: bytes) -> Self | None:
        """Extract the long lists of a text; return None if it has none, or one has anything but numbers."""
        if len(body) < LONG_BODY or body.count(b"]") * BYTES_OF_A_PART > len(body):
            return None
        parts, lists, end = list[bytes](), dict[str, LongList](), 0
        for start, stop in _innermost_lists(body):
            if stop - start < LONG_LIST:
                continue
            numbers = _read_numbers(body, start, stop)
            if numbers is None:
                return None
            stub = f"{_LIST_STUB}{len(lists)}"
            lists[stub] = LongList(numbers, body, start, stop)
            parts += body[end:start], b'"%b"' % stub.encode()
            end = stop
        return cls(b"".join((*parts, body[end:])), lists) if lists else None

    def put_into(self, fields: Mapping[str, Any]) -> bool:
        """Put the lists into the tensors of a request; return False, with the request unusable, if one does not fit."""
        unplaced = dict(self.lists)
        for tensor in _possible_tensors(fields):
            data = tensor.get("data")
            if type(data) is list and len(data) == 1 and type(data[0]) is str and data[0] in unplaced:
                tensor["data"] = unplaced.pop(data[0])
        return not unplaced


def parse_tensors(body: bytes, max_depth: int) -> dict[str, Any]:
    """Parse JSON like `parse_json`; the data of tensors may be a `LongList`."""
    extracted = ExtractedLists.extract(body)
    if extracted is not None:
        with suppress(Refusal):
            fields = parse_json(extracted.text, max_depth)
            if extracted.put_into(fields):
                return fields
    return parse_json(body, max_depth)


def _innermost_lists(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield start and end of each innermost list; text inside a string may look like one."""
    previous_end, stop = 0, body.find(b"]")
    while stop >= 0:
        start = body.rfind(b"[", previous_end, stop)
        if start >= 0:
            yield start + 1, stop
        previous_end, stop = stop + 1, body.find(b"]", stop + 1)


def _read_numbers(body: bytes, start: int, stop: int) -> HostArray | None:
    """Read the numbers of a list; return None if it has anything else, or numbers beyond int64 and float64."""
    has_fractions = any(body.find(part, start, stop) >= 0 for part in _FRACTION_BYTES)
    array = np.empty(body.count(b",", start, stop) + 1, np.float64 if has_fractions else np.int64)
    filled = 0
    while start <= stop:
        cut = body.find(b",", min(start + _NUMBERS_CHUNK, stop), stop)  # chunks end at commas
        end = cut if cut >= 0 else stop
        chunk, start = body[start:end], end + 1
        if chunk.translate(None, _NUMBER_BYTES):
            return None
        try:
            values = orjson.loads(b"[%b]" % chunk)
            numbers = np.fromiter(values, np.float64, len(values)) if has_fractions else integers("q", values)
        except (ValueError, TypeError, OverflowError):
            return None  # no JSON, or an integer beyond 64 bits
        if not values:
            return None  # nothing between two commas
        array[filled : filled + len(values)] = numbers
        filled += len(values)
    return array


def _possible_tensors(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every object that may be a tensor: the request itself, its fields, and those in lists of feeds."""
    for part in (fields, *fields.values()):
        if type(part) is dict:
            yield part
        for entry in part if type(part) is list else ():
            if type(entry) is dict and type(entry.get("tensor")) is dict:
                yield entry["tensor"]
