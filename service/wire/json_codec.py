"""Bytes to JSON values, strictly: no key twice, no NaN, no deep nesting, integers exact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import jiter
import numpy as np

from engine import HostArray, printable
from service.budget import PARSED
from service.errors import Refusal

_CHUNK: Final = 1 << 20
_QUOTE: Final = ord('"')
_COMMA: Final = ord(",")
_LIST: Final = ord("[")
_OBJECT: Final = ord("{")
_STRUCTURE: Final = b'[]{}"'
_STEP: Final = np.zeros(256, np.int8)
_STEP[[ord("["), ord("{")]] = 1
_STEP[[ord("]"), ord("}")]] = -1
#: bytes of JSON that are read, or of elements that are written as JSON, in a second
TEXT_RATE: Final = 50e6
#: bytes for each list or object of a long body, at the least: of many short ones, to find what stands between them
#: takes longer than to read them
BYTES_OF_A_PART: Final = 8000
#: what they take, with their place in another; objects with their first key
_LIST_BYTES: Final = 96
_OBJECT_BYTES: Final = 224
#: what they may take in any body
_FREE: Final = 64 << 20
#: what libraries in Rust raise where Python gives them no memory: no Exception, and of a type of each library's own
_PANIC: Final = "PanicException"
_DUPLICATE: Final = re.compile(r'Detected duplicate key "(.*)" (at line .*)', re.DOTALL)


def parse_json(body: bytes, max_depth: int, what: str = "the body") -> dict[str, Any]:
    """The JSON object that `body` holds; `what` it is called in reports.

    Raises Refusal: invalid_json, duplicate_key, too_deep, over_budget, invalid_field; MemoryError.
    """
    if not body:
        raise Refusal("invalid_json", f"{what} is empty; a JSON object is expected")
    if body.startswith(b"\xef\xbb\xbf"):
        raise Refusal("invalid_json", f"{what} starts with a byte-order mark; send plain UTF-8")
    _check_depth(body, max_depth)
    _check_containers(body, what)
    try:
        value = jiter.from_json(body, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:
        raise _refusal(body, str(error), what) from None
    except BaseException as error:
        if type(error).__name__ == _PANIC:
            raise MemoryError from None
        raise
    if not isinstance(value, dict):
        got = json_kind(value)
        raise Refusal(
            "invalid_field",
            f"{what} must be a JSON object, but is {got}",
            expected="an object",
            got=got,
            pointer="",
        )
    return value


def json_kind(value: object) -> str:
    """What a parsed value is, in the words of JSON."""
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
    """How many elements a JSON array has, without making them: an upper bound where it is malformed."""
    commas = 0
    for codes, depths in _levels(array, _STRUCTURE + b","):
        commas += int(np.count_nonzero((codes == _COMMA) & (depths == 1)))
    return commas + 1 if array.strip()[1:-1].strip() else 0


def _check_depth(body: bytes, limit: int) -> None:
    """Raise too_deep before the parser, in one pass of array code that costs the same for every input."""
    if body.count(b"[") + body.count(b"{") <= limit:
        return
    for _, depths in _levels(body, _STRUCTURE):
        if depths.max() > limit:
            raise Refusal(
                "too_deep",
                f"the JSON is nested more than {limit} levels deep",
                expected=f"at most {limit} levels",
            )


def _check_containers(body: bytes, what: str) -> None:
    """Raise over_budget before a small text becomes objects that take many times as much."""
    most = max(PARSED * len(body), _FREE)
    if _taken_by(body.count(b"["), body.count(b"{")) <= most:
        return
    lists = objects = 0
    for codes, depths in _levels(body, _STRUCTURE):  # those in strings take nothing
        lists += int(np.count_nonzero((codes == _LIST) & (depths > 0)))
        objects += int(np.count_nonzero((codes == _OBJECT) & (depths > 0)))
    taken = _taken_by(lists, objects)
    if taken > most:
        counted = f"{lists} lists and {objects} objects"
        detail = f"{what} has {counted}, which take {taken} bytes, and the limit is {most} bytes"
        raise Refusal("over_budget", detail, expected=f"at most {most} bytes", got=f"{taken} bytes")


def _taken_by(lists: int, objects: int) -> int:
    return _LIST_BYTES * lists + _OBJECT_BYTES * objects


def _levels(body: bytes, kept: bytes) -> Iterator[tuple[HostArray, HostArray]]:
    """The bytes of `kept` in a JSON text and how deep each is nested, chunk by chunk; 0 for all in strings."""
    depth, in_string = 0, False
    skeleton = np.frombuffer(_skeleton(body, kept), np.uint8)
    for start in range(0, len(skeleton), _CHUNK):
        codes = skeleton[start : start + _CHUNK]
        quoted = np.logical_xor.accumulate(codes == _QUOTE) ^ in_string
        depths = np.cumsum(np.where(quoted, 0, _STEP[codes]), dtype=np.int64) + depth
        depth, in_string = int(depths[-1]), bool(quoted[-1])
        yield codes, np.where(quoted, 0, depths)


def _skeleton(body: bytes, kept: bytes) -> bytes:
    """The bytes of `kept`, of quotes only those that open and close strings; nothing else."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return body.translate(None, bytes(set(range(256)) - set(kept)))


def _refusal(body: bytes, reason: str, what: str) -> Refusal:
    duplicate = _DUPLICATE.fullmatch(reason)
    if duplicate:
        key, place = printable(duplicate[1]), duplicate[2]
        return Refusal("duplicate_key", f"the key “{key}” stands twice in one JSON object, {place}", got=key)
    if _has_nan(body):
        hint = "JSON has no NaN and no Infinity; send tensors that hold them as data_b64"
        return Refusal("invalid_json", f"{what} is not JSON ({reason}): {hint}")
    return Refusal("invalid_json", f"{what} is not JSON: {reason}")


def _has_nan(body: bytes) -> bool:
    try:
        jiter.from_json(body, allow_inf_nan=True)
    except ValueError:
        return False
    return True
