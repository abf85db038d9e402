"""Comparison of a program's result with the expected one. The first difference is reported in one line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from clients.conformance.bits import MalformedError, from_file, from_json
from clients.conformance.cases import Case

_MISSING: Final = object()
#: members of requests and nodes that may hold a tensor
TENSOR_MEMBERS: Final = frozenset({"tensor", "cotangent", "value"})
#: members of results that hold JSON in a string
_TEXTS: Final = frozenset({"nodes", "functions", "graph", "extra"})
#: members of a node that mean the same empty as absent
_OPTIONAL: Final = frozenset({"operands", "attrs", "name"})
_SHOWN: Final = 160


def difference(want: Any, received: Any, path: str = "", *, closed: bool = False) -> str | None:
    """Return where `received` differs from `want`, or None. Members not in `want` are allowed, unless `closed`.

    An empty list equals an absent one. Integers must be integers; other numbers may be written in any equivalent way.
    """
    if isinstance(want, Mapping):
        return _of_members(want, received, path, closed)
    if isinstance(want, list):
        if want == [] and received in (_MISSING, []):
            return None
        return _of_entries(want, received, path, closed)
    same = type(received) is type(want) and received == want
    if isinstance(want, float) and type(received) in (int, float):
        same = received == want and math.copysign(1, received) == math.copysign(1, want)
    return None if same else _mismatch(path, want, received)


def _of_members(want: Mapping[str, Any], received: Any, path: str, closed: bool) -> str | None:
    if not isinstance(received, Mapping):
        return _mismatch(path, want, received)
    if closed and (unexpected := [name for name in received if name not in want]):
        return f"{path}: has {', '.join(unexpected)}, too"
    differences = (
        difference(want[name], received.get(name, _MISSING), f"{path}.{name}", closed=closed) for name in want
    )
    return next(filter(None, differences), None)


def _of_entries(want: list[Any], received: Any, path: str, closed: bool) -> str | None:
    if not isinstance(received, list):
        return _mismatch(path, want, received)
    if len(received) != len(want):
        return f"{path}: {len(want)} entries were wanted, and came {len(received)}: {_short(received)}"
    pairs = enumerate(zip(want, received, strict=True))
    return next(filter(None, (difference(w, g, f"{path}[{i}]", closed=closed) for i, (w, g) in pairs)), None)


def _mismatch(path: str, want: Any, received: Any) -> str:
    return f"{path}: wanted {_short(want)}, got {'nothing' if received is _MISSING else _short(received)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


# -------------------------------------------------------------------- canonical form


def plain(value: Any, name: str = "", *, closed: bool = False) -> Any:
    """Return a request, node or result in its canonical form, in which it is compared.

    Tensors in JSON become their bits, empty members of nodes are dropped, and JSON in strings is parsed. Raises
    MalformedError, if `closed` also for tensors with members that a server refuses.
    """
    if isinstance(value, list):
        return [plain(entry, closed=closed) for entry in value]
    if name in _TEXTS and isinstance(value, str):
        return plain(json.loads(value), closed=closed)
    if not isinstance(value, Mapping):
        return value
    if name in TENSOR_MEMBERS and "hex" not in value:
        return from_json(value, closed=closed)
    members = {key: plain(member, key, closed=closed) for key, member in value.items()}
    if "op" in members:
        members = {key: member for key, member in members.items() if key not in _OPTIONAL or member not in ([], {}, "")}
    return members


# -------------------------------------------------------------------- one function per kind of case


def _encode(case: Case, received: Mapping[str, Any]) -> str | None:
    want = case["want"]
    if "error" in want:
        return _error(want["error"], received.get("error", _MISSING), "error")
    encoding, bits = _written(received)
    if case["tensor"]["hex"] and encoding != want["as"]:
        return f"written as {encoding}, where {want['as']} was wanted"
    return difference(case["tensor"], bits, "tensor", closed=True)


def _written(received: Mapping[str, Any]) -> tuple[str, Any]:
    """Return how a tensor was encoded, and its bits."""
    if "file" in received:
        _, tensors = from_file(bytes.fromhex(received["file"]))
        if list(tensors) != ["t"]:
            raise MalformedError(f"the file has {list(tensors)}, and not t alone")
        return "file", tensors["t"]
    if "wire" not in received:
        raise MalformedError(f"neither wire nor file: {_short(received)}")
    tensor = json.loads(received["wire"])
    return ("data_b64" if "data_b64" in tensor else "data"), from_json(tensor, closed=True)


def _decode(case: Case, received: Mapping[str, Any]) -> str | None:
    want = case["want"]
    if "error" in want:
        return _error(want["error"], received.get("error", _MISSING), "error")
    return difference(want["tensor"], received.get("tensor", _MISSING), "tensor", closed=True)


def _build(case: Case, received: Mapping[str, Any]) -> str | None:
    want = case["want"]
    if "error" in want:
        return _error(want["error"], received.get("error", _MISSING), "error")
    if "nodes" not in received:
        return _mismatch("nodes", want["nodes"], received)
    built = {name: member for name, member in received.items() if name in ("nodes", "functions")}
    return difference(plain(want), plain(built, closed=True), closed=True)


def _calls(case: Case, received: Mapping[str, Any]) -> str | None:
    want, results = case["want"], received.get("results")
    if not isinstance(results, list) or len(results) != len(want["results"]):
        return _mismatch("results", want["results"], results)
    for i, (expected, result) in enumerate(zip(want["results"], results, strict=True)):
        if problem := _result(expected, result, f"results[{i}]"):
            return problem
    return difference(want["waits"], received.get("waits", _MISSING), "waits") if "waits" in want else None


def _result(want: Mapping[str, Any], received: Any, path: str) -> str | None:
    if "raised" in want:
        raised = received.get("raised", _MISSING) if isinstance(received, Mapping) else _MISSING
        return (
            _mismatch(path, want, received) if raised is _MISSING else _error(want["raised"], raised, f"{path}.raised")
        )
    return difference(plain(want), plain(received), path)


def _error(want: Mapping[str, Any], received: Any, path: str) -> str | None:
    """Return how an error differs from the expected one. It must have a message with the required words."""
    message = received.get("message") if isinstance(received, Mapping) else None
    if not isinstance(message, str) or not message:
        return f"{path}: no error with a message: {'nothing' if received is _MISSING else _short(received)}"
    if missing := [word for word in want.get("mentions", ()) if word not in message.lower()]:
        return f"{path}.message: does not mention {', '.join(missing)}: {_short(message)}"
    stated = {name: value for name, value in want.items() if name != "mentions"}
    return difference(plain(stated), plain(received), path)


_OF_KIND: Final[Mapping[str, Callable[[Case, Mapping[str, Any]], str | None]]] = {
    "encode": _encode,
    "decode": _decode,
    "build": _build,
    "exchange": _calls,
    "live": _calls,
}


def fault(case: Case, received: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the result of a case, or None if it is as expected."""
    try:
        return _OF_KIND[case["kind"]](case, received)
    except (MalformedError, json.JSONDecodeError, TypeError, ValueError, AttributeError) as error:
        return f"the result is malformed: {error}"
