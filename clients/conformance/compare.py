"""What a program answered, beside what was wanted: the first difference, in one line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from clients.conformance.bits import MalformedError, from_file, from_json
from clients.conformance.cases import Case

_MISSING: Final = object()
#: members of requests and nodes in which a tensor may stand
TENSOR_MEMBERS: Final = frozenset({"tensor", "cotangent", "value"})
#: members of results that are JSON in a string
_TEXTS: Final = frozenset({"nodes", "functions", "graph", "extra"})
#: members of a node that are as if absent where they are empty
_OPTIONAL: Final = frozenset({"operands", "attrs", "name"})
_SHOWN: Final = 160


def difference(want: Any, got: Any, at: str = "", *, closed: bool = False) -> str | None:
    """Where `got` is not what is wanted. What `want` does not mention may be there, unless `closed`.

    An empty list is as if absent. Whole numbers are to be whole; others may be written in any way that means the same.
    """
    if isinstance(want, Mapping):
        return _of_members(want, got, at, closed)
    if isinstance(want, list):
        if want == [] and got in (_MISSING, []):
            return None
        return _of_entries(want, got, at, closed)
    same = type(got) is type(want) and got == want
    if isinstance(want, float) and type(got) in (int, float):
        same = got == want and math.copysign(1, got) == math.copysign(1, want)
    return None if same else _said(at, want, got)


def _of_members(want: Mapping[str, Any], got: Any, at: str, closed: bool) -> str | None:
    if not isinstance(got, Mapping):
        return _said(at, want, got)
    if closed and (more := [name for name in got if name not in want]):
        return f"{at}: has {', '.join(more)}, too"
    found = (difference(want[name], got.get(name, _MISSING), f"{at}.{name}", closed=closed) for name in want)
    return next(filter(None, found), None)


def _of_entries(want: list[Any], got: Any, at: str, closed: bool) -> str | None:
    if not isinstance(got, list):
        return _said(at, want, got)
    if len(got) != len(want):
        return f"{at}: {len(want)} entries were wanted, and came {len(got)}: {_short(got)}"
    pairs = enumerate(zip(want, got, strict=True))
    return next(filter(None, (difference(w, g, f"{at}[{i}]", closed=closed) for i, (w, g) in pairs)), None)


def _said(at: str, want: Any, got: Any) -> str:
    return f"{at}: wanted {_short(want)}, got {'nothing' if got is _MISSING else _short(got)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


# -------------------------------------------------------------------- what is compared by what it means


def plain(value: Any, name: str = "", *, closed: bool = False) -> Any:
    """A request, a node or a result in the one form in which it is compared.

    Tensors of JSON become their bits, empty members of nodes go, and JSON in strings is read. Raises MalformedError;
    where it is `closed`, for tensors with members that a server refuses, too.
    """
    if isinstance(value, list):
        return [plain(entry, closed=closed) for entry in value]
    if name in _TEXTS and isinstance(value, str):
        return plain(json.loads(value), closed=closed)
    if not isinstance(value, Mapping):
        return value
    if name in TENSOR_MEMBERS and "hex" not in value:
        return from_json(value, closed=closed)
    kept = {key: plain(member, key, closed=closed) for key, member in value.items()}
    if "op" in kept:
        kept = {key: member for key, member in kept.items() if key not in _OPTIONAL or member not in ([], {}, "")}
    return kept


# -------------------------------------------------------------------- a kind each


def _encode(case: Case, got: Mapping[str, Any]) -> str | None:
    want = case["want"]
    if "error" in want:
        return _error(want["error"], got.get("error", _MISSING), "error")
    spelled, bits = _written(got)
    if case["tensor"]["hex"] and spelled != want["as"]:
        return f"written as {spelled}, where {want['as']} was wanted"
    return difference(case["tensor"], bits, "tensor", closed=True)


def _written(got: Mapping[str, Any]) -> tuple[str, Any]:
    """How a tensor was written, and its bits."""
    if "file" in got:
        _, tensors = from_file(bytes.fromhex(got["file"]))
        if list(tensors) != ["t"]:
            raise MalformedError(f"the file has {list(tensors)}, and not t alone")
        return "file", tensors["t"]
    if "wire" not in got:
        raise MalformedError(f"neither wire nor file: {_short(got)}")
    tensor = json.loads(got["wire"])
    return ("data_b64" if "data_b64" in tensor else "data"), from_json(tensor, closed=True)


def _decode(case: Case, got: Mapping[str, Any]) -> str | None:
    want = case["want"]
    if "error" in want:
        return _error(want["error"], got.get("error", _MISSING), "error")
    return difference(want["tensor"], got.get("tensor", _MISSING), "tensor", closed=True)


def _build(case: Case, got: Mapping[str, Any]) -> str | None:
    want = case["want"]
    if "error" in want:
        return _error(want["error"], got.get("error", _MISSING), "error")
    if "nodes" not in got:
        return _said("nodes", want["nodes"], got)
    built = {name: made for name, made in got.items() if name in ("nodes", "functions")}
    return difference(plain(want), plain(built, closed=True), closed=True)


def _calls(case: Case, got: Mapping[str, Any]) -> str | None:
    want, results = case["want"], got.get("results")
    if not isinstance(results, list) or len(results) != len(want["results"]):
        return _said("results", want["results"], results)
    for i, (wanted, result) in enumerate(zip(want["results"], results, strict=True)):
        if found := _result(wanted, result, f"results[{i}]"):
            return found
    return difference(want["waits"], got.get("waits", _MISSING), "waits") if "waits" in want else None


def _result(want: Mapping[str, Any], got: Any, at: str) -> str | None:
    if "raised" in want:
        raised = got.get("raised", _MISSING) if isinstance(got, Mapping) else _MISSING
        return _said(at, want, got) if raised is _MISSING else _error(want["raised"], raised, f"{at}.raised")
    return difference(plain(want), plain(got), at)


def _error(want: Mapping[str, Any], got: Any, at: str) -> str | None:
    """Where an error is another one; it says something, and mentions what it has to."""
    message = got.get("message") if isinstance(got, Mapping) else None
    if not isinstance(message, str) or not message:
        return f"{at}: no error with a message: {'nothing' if got is _MISSING else _short(got)}"
    if absent := [word for word in want.get("mentions", ()) if word not in message.lower()]:
        return f"{at}.message: does not mention {', '.join(absent)}: {_short(message)}"
    stated = {name: value for name, value in want.items() if name != "mentions"}
    return difference(plain(stated), plain(got), at)


_OF_KIND: Final[Mapping[str, Callable[[Case, Mapping[str, Any]], str | None]]] = {
    "encode": _encode,
    "decode": _decode,
    "build": _build,
    "exchange": _calls,
    "live": _calls,
}


def fault(case: Case, got: Mapping[str, Any]) -> str | None:
    """What is wrong with the result of a case; None where it is what was wanted."""
    try:
        return _OF_KIND[case["kind"]](case, got)
    except (MalformedError, json.JSONDecodeError, TypeError, ValueError, AttributeError) as error:
        return f"the result is malformed: {error}"
