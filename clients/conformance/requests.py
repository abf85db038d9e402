"""Comparison of the requests that the scripted server received with those that a case expects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from clients.conformance.bits import Bits, Json, MalformedError, from_file, from_json
from clients.conformance.cases import Case
from clients.conformance.compare import difference, plain
from clients.conformance.programs import ENVIRONMENT_KEY
from clients.conformance.scripted import JSON, SAFETENSORS, ReceivedRequest

_FORMS: Final = {JSON: "json", SAFETENSORS: "binary"}
#: lists of tensors by node, whose order is irrelevant
_BY_NODE: Final = ("feeds", "cotangents", "tangents", "vectors")


def unexpected(case: Case, received: Sequence[ReceivedRequest]) -> str | None:
    """Return the first difference between the expected and the received requests of a case, or None."""
    if len(received) != len(case["saw"]):
        shown = ", ".join(f"{request.method} {request.path}" for request in received) or "none"
        return f"saw: {len(case['saw'])} requests were wanted, and came {len(received)}: {shown}"
    key = case.get("client", {}).get("api_key", ENVIRONMENT_KEY)
    for i, (want, request) in enumerate(zip(case["saw"], received, strict=True)):
        try:
            problem = _differs(want, request, key)
        except (MalformedError, ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"the request is malformed: {error!r}"
        if problem:
            return f"saw[{i}] {problem}"
    return None


def _differs(want: Mapping[str, Any], request: ReceivedRequest, key: str) -> str | None:
    actual: Json = {
        "method": request.method,
        "path": unquote(request.path),
        "query": _without_encoding(dict(parse_qsl(request.query, keep_blank_values=True))),
        "idempotency_key": request.headers.get("idempotency-key"),
        "authorization": request.headers.get("authorization"),
    }
    expected: Json = {
        "method": want["method"],
        "path": want["path"],
        "query": want.get("query", {}),
        "idempotency_key": want.get("idempotency_key"),
        "authorization": f"Bearer {want.get('api_key', key)}",
    }
    for name, value in want.get("headers", {}).items():
        expected[name], actual[name] = value, request.headers.get(name)
    if "form" in want:
        expected["form"], actual["form"] = want["form"], _FORMS.get(_kind(request))
    if problem := difference(expected, actual, closed=True):
        return problem
    return difference(plain(want["body"]), body_of(request), ".body", closed=True) if "body" in want else None


def _kind(request: ReceivedRequest) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def body_of(received: ReceivedRequest) -> Any:
    """Return the JSON of a request in canonical form, with all its tensors in it as bits."""
    is_tensor = received.method == "PUT" and received.path.startswith("/v1/tensors/")
    if _kind(received) != SAFETENSORS:
        sent = json.loads(received.body)
        return from_json(sent, closed=True) if is_tensor else _usual(plain(sent, closed=True))
    metadata, tensors = from_file(received.body)
    if is_tensor:
        (bits,) = tensors.values()
        return bits
    request = plain(json.loads(metadata["request"]), closed=True)
    for name, bits in tensors.items():
        _put(request, name, bits, received.path)
    return _usual(request)


def _put(request: Json, name: str, bits: Bits, path: str) -> None:
    """Insert a tensor sent beside the JSON into the member of the JSON that it belongs to."""
    role, _, node = name.partition(".")
    if role == "functions":
        function, _, node_in_function = node.partition(".")
        _put({"graph": request["graph"]["functions"][int(function)]}, node_in_function, bits, path)
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
    """Return a request without its response encoding and empty lists, with tensors sorted by node."""
    members = {name: value for name, value in _without_encoding(request).items() if value != []}
    for name in set(_BY_NODE) & set(members):
        members[name] = sorted(members[name], key=lambda entry: entry["node"])
    if members.get("graph", {}).get("opset") == 1:
        members["graph"] = {name: value for name, value in members["graph"].items() if name != "opset"}
    return members
