"""What came to the scripted server, beside what a case says was to come."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from clients.conformance.bits import Bits, Json, MalformedError, from_file, from_json
from clients.conformance.cases import Case
from clients.conformance.compare import difference, plain
from clients.conformance.programs import ENVIRONMENT_KEY
from clients.conformance.scripted import JSON, SAFETENSORS, Came

_FORMS: Final = {JSON: "json", SAFETENSORS: "binary"}
#: lists of tensors for nodes, whose order means nothing
_BY_NODE: Final = ("feeds", "cotangents", "tangents", "vectors")


def unexpected(case: Case, came: Sequence[Came]) -> str | None:
    """The first difference between the requests of a case and those that came."""
    if len(came) != len(case["saw"]):
        shown = ", ".join(f"{request.method} {request.path}" for request in came) or "none"
        return f"saw: {len(case['saw'])} requests were wanted, and came {len(came)}: {shown}"
    key = case.get("client", {}).get("api_key", ENVIRONMENT_KEY)
    for i, (want, request) in enumerate(zip(case["saw"], came, strict=True)):
        try:
            found = _differs(want, request, key)
        except (MalformedError, ValueError, KeyError, TypeError, AttributeError) as error:
            found = f"the request is malformed: {error!r}"
        if found:
            return f"saw[{i}] {found}"
    return None


def _differs(want: Mapping[str, Any], came: Came, key: str) -> str | None:
    stated: Json = {
        "method": came.method,
        "path": unquote(came.path),
        "query": _without_encoding(dict(parse_qsl(came.query, keep_blank_values=True))),
        "idempotency_key": came.headers.get("idempotency-key"),
        "authorization": came.headers.get("authorization"),
    }
    wanted: Json = {
        "method": want["method"],
        "path": want["path"],
        "query": want.get("query", {}),
        "idempotency_key": want.get("idempotency_key"),
        "authorization": f"Bearer {want.get('api_key', key)}",
    }
    for name, value in want.get("headers", {}).items():
        wanted[name], stated[name] = value, came.headers.get(name)
    if "form" in want:
        wanted["form"], stated["form"] = want["form"], _FORMS.get(_kind(came))
    if found := difference(wanted, stated, closed=True):
        return found
    return difference(plain(want["body"]), body_of(came), ".body", closed=True) if "body" in want else None


def _kind(came: Came) -> str:
    return came.headers.get("content-type", "").partition(";")[0].strip().lower()


def body_of(came: Came) -> Any:
    """The JSON of a request with all of its tensors in it, as bits, and without what is as if absent."""
    is_tensor = came.method == "PUT" and came.path.startswith("/v1/tensors/")
    if _kind(came) != SAFETENSORS:
        sent = json.loads(came.body)
        return from_json(sent, closed=True) if is_tensor else _usual(plain(sent, closed=True))
    metadata, tensors = from_file(came.body)
    if is_tensor:
        (bits,) = tensors.values()
        return bits
    request = plain(json.loads(metadata["request"]), closed=True)
    for name, bits in tensors.items():
        _put(request, name, bits, came.path)
    return _usual(request)


def _put(request: Json, name: str, bits: Bits, path: str) -> None:
    """Write a tensor that came beside the JSON where it would stand in it."""
    role, _, node = name.partition(".")
    if role == "functions":
        function, _, place = node.partition(".")
        _put({"graph": request["graph"]["functions"][int(function)]}, place, bits, path)
    elif role == "constants":
        request["graph"]["nodes"][int(node)].setdefault("attrs", {})["value"] = bits
    elif role == "cotangents" and path.endswith("/gradients"):
        request["cotangent"] = bits
    else:
        entries = request.setdefault(role, [])
        entry = next((entry for entry in entries if entry["node"] == int(node)), None)
        if entry is None:
            entries.append({"node": int(node), "tensor": bits})
        else:
            entry["tensor"] = bits


def _without_encoding(stated: Json) -> Json:
    return {name: value for name, value in stated.items() if name != "encoding"}


def _usual(request: Json) -> Json:
    """A request without how it is to be answered, without empty lists, and with tensors in the order of nodes."""
    kept = {name: value for name, value in _without_encoding(request).items() if value != []}
    for name in set(_BY_NODE) & set(kept):
        kept[name] = sorted(kept[name], key=lambda entry: entry["node"])
    if kept.get("graph", {}).get("opset") == 1:
        kept["graph"] = {name: value for name, value in kept["graph"].items() if name != "opset"}
    return kept
