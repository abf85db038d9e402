"""Responses of a future server: today's with more fields, another op and dtype, and unknown error codes.

These are the additions that the API may make within /v1, so clients must tolerate them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from clients.conformance.bits import LENGTH, MalformedError, file_of

#: field added to every object
FIELD: Final = "a_field_of_tomorrow"
DTYPE: Final = "bfloat16"
OP: Final = {
    "name": "an_op_of_tomorrow",
    "summary": "Something that is not there yet.",
    "doc": "Something that is not there yet.",
    "operands": ["x", "y?"],
    "attributes": [{"name": "scale", "type": "a_kind_of_tomorrow", "required": True, "doc": "how much"}],
    "gradient": "g",
    "dtypes": [DTYPE],
    "aliases": [],
    "several_outputs": False,
    "since": 2,
}
#: prefix that makes an error code unknown, for a status whose codes do not affect retries
CODE: Final = "tomorrows_"
STATUS: Final = 422
#: members that hold objects of the caller, which gain no field
_AS_THEY_ARE: Final = frozenset({"attrs"})


def grown(value: Any, name: str = "") -> Any:
    """Return a response as a future server would send it, or the part of one that is called `name`."""
    if isinstance(value, list):
        entries = [grown(entry) for entry in value]
        if name == "ops":
            return [*entries, OP]
        return [*value, DTYPE] if name == "dtypes" else entries
    if not isinstance(value, Mapping) or name in _AS_THEY_ARE:
        return value
    members = {key: grown(member, key) for key, member in value.items()}
    return recoded(members) | {FIELD: _field_of(value)}


def recoded(problem: dict[str, Any]) -> dict[str, Any]:
    """Give a problem, or an error in a result, an unknown code if its status is 422."""
    if problem.get("status") == STATUS and isinstance(problem.get("code"), str):
        return problem | {"code": CODE + problem["code"]}
    return problem


def expected(want: Any, name: str = "") -> Any:
    """Return the result expected of a client whose server extends its responses."""
    if isinstance(want, list):
        entries = [expected(entry) for entry in want]
        return [*entries, {"name": OP["name"]}] if name == "ops" else entries
    if not isinstance(want, Mapping):
        return want
    return recoded({key: expected(member, key) for key, member in want.items()})


def _field_of(members: Mapping[str, Any]) -> Any:
    """Return the value of the added field: in a map of numbers or strings another one, else an unrelated value."""
    for plain in (int, str):
        if members and all(type(member) is plain for member in members.values()):
            return plain()
    return {"nested": [1.5, None, {"deep": True}]}


def grown_body(media_type: str, body: bytes) -> bytes:
    """Return a JSON or safetensors body as a future server would send it. Other bodies are unchanged."""
    kind = media_type.partition(";")[0].strip().lower()
    try:
        if kind in ("application/json", "application/problem+json"):
            return json.dumps(grown(json.loads(body))).encode()
        return _grown_file(body) if kind == "application/vnd.safetensors" else body
    except (json.JSONDecodeError, UnicodeDecodeError, MalformedError):
        return body  # the case breaks the body on purpose


def _grown_file(body: bytes) -> bytes:
    data = LENGTH + int.from_bytes(body[:LENGTH], "little")
    header = json.loads(body[LENGTH:data])
    metadata = header.get("__metadata__", {})
    if "response" in metadata:
        metadata["response"] = json.dumps(grown(json.loads(metadata["response"])))
    header["__metadata__"] = metadata | {FIELD: ""}
    return file_of(json.dumps(header).ljust(data - LENGTH), body[data:])
