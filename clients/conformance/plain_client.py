"""Execution of live cases over plain HTTP, without a client library: the server's responses are the expected results.

Tensors are sent as base64 and graphs with every call, even registered ones. Nothing is retried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

import httpx

from clients.conformance.bits import Json, from_json, to_json
from clients.conformance.cases import Case
from clients.conformance.compare import TENSOR_MEMBERS
from clients.conformance.steps import graph_of

#: members of a call that are not fields of its request
_OURS: Final = frozenset({"do", "graph", "form"})
#: members of a response that a client need not return, by call
_LEFT_OUT: Final = {"register": {"graph"}}
#: members of a model besides its graph
_OF_A_MODEL: Final = ("inputs", "outputs", "bound", "description")
#: members of responses that vary between calls or between forms
_NOT_COMPARED: Final = frozenset({"etag", "request_id", "response_bytes"})
#: members of `stats` that are the same in every call
_LASTING: Final = ("device", "graph_id", "opset", "dtype")
#: members of a problem that are the same in every call
_PLACES: Final = ("status", "code", "node", "function", "function_node", "operand", "pointer")
_TYPES: Final = {401: "authentication", 403: "authentication", 404: "not_found", 408: "deadline", 504: "deadline"} | {
    409: "condition",
    412: "condition",
    429: "rate",
    503: "overload",
    507: "store_full",
}


class PlainClient:
    """Connection to a real server."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._http.close()

    def expected_results(self, case: Case) -> Json:
        """Return the `want` of a live case."""
        keep = case.get("keep", ())
        return {"results": [self._result(call, keep) for call in case["calls"]]}

    def clear(self) -> None:
        """Delete all stored models, tensors and graphs, so that the next client starts from the same state."""
        for kind, name in (("models", "name"), ("tensors", "tensor_id"), ("graphs", "graph_id")):
            for entry in self._http.get(f"/v1/{kind}", params={"limit": 1000}).json()[kind]:
                self._http.delete(f"/v1/{kind}/{entry[name]}").raise_for_status()

    def _result(self, call: Json, keep: Any) -> Json:
        response = self._send(call)
        answer = response.json()
        if response.is_error:
            return {"raised": _error(answer, response.status_code)}
        left_out = _LEFT_OUT.get(call["do"], {"stats"} - set(keep))
        if call["do"] == "ops":
            answer["ops"] = [{"name": op["name"]} for op in answer["ops"]]
        return {"returned": _returned({name: part for name, part in answer.items() if name not in left_out})}

    def _send(self, call: Json) -> httpx.Response:
        match call["do"]:
            case "register":
                return self._register(call, {name: call[name] for name in ("description",) if name in call})
            case "put":
                return self._http.put(_path(call), json=to_json(call["tensor"]), headers=_conditions(call))
            case "get":
                return self._http.get(_path(call), params={"encoding": "base64"})
            case "delete":
                return self._http.delete(_path(call), headers=_conditions(call))
            case "put_model" | "get_model" | "delete_model" | "delete_graph":
                return self._of_models(call)
            case "list_tensors" | "list_graphs" | "list_models" | "ops":
                return self._http.get(f"/v1/{call['do'].removeprefix('list_')}")
            case name:
                if call["graph"].get("registered"):
                    registration = self._register(call["graph"], {})
                    if registration.is_error:
                        return registration
                return self._http.post(f"/v1/{name}", json=_request(call))

    def _of_models(self, call: Json) -> httpx.Response:
        """Send a call on a model or on a graph, after registering the graph if the call has one."""
        graph_id = call.get("graph_id")
        if "graph" in call:
            registration = self._register(call["graph"], {})
            if registration.is_error:
                return registration
            graph_id = registration.json()["graph_id"]
        if call["do"] == "delete_graph":
            return self._http.delete(f"/v1/graphs/{graph_id}")
        method, path = call["do"].removesuffix("_model").upper(), f"/v1/models/{call['name']}"
        stated = {name: call[name] for name in _OF_A_MODEL if name in call}
        body = {"graph_id": graph_id} | stated if method == "PUT" else None
        return self._http.request(method, path, json=body, headers=_conditions(call))

    def _register(self, stated: Json, extra: Json) -> httpx.Response:
        return self._http.post("/v1/graphs", json={"graph": graph_of(stated)} | extra)


def _path(call: Json) -> str:
    return f"/v1/tensors/{call['name']}"


def _request(call: Json) -> Json:
    """Return the body of a computing call."""
    fields = {name: _on_the_wire(value, name) for name, value in call.items() if name not in _OURS}
    return {"graph": graph_of(call["graph"]), "encoding": "base64"} | fields


def _on_the_wire(value: Any, name: str = "") -> Any:
    if isinstance(value, list):
        return [_on_the_wire(entry) for entry in value]
    if not isinstance(value, Mapping):
        return value
    if name in TENSOR_MEMBERS:
        return to_json(dict(value))
    return {key: _on_the_wire(member, key) for key, member in value.items()}


def _conditions(call: Json) -> dict[str, str]:
    stated = (("If-Match", call.get("if_match")), ("If-None-Match", call.get("if_none_match")))
    return {name: etag if etag == "*" else f'"{etag}"' for name, etag in stated if etag is not None}


def _returned(value: Any, name: str = "") -> Any:
    """Return a response as clients return it, without the members that vary between calls."""
    if isinstance(value, list):
        return [_returned(entry, "entry") for entry in value]
    if not isinstance(value, Mapping):
        return value
    if name in TENSOR_MEMBERS and "dtype" in value:
        return from_json(dict(value))
    if name == "stats":
        return {key: value[key] for key in _LASTING}
    return {key: _returned(member, key) for key, member in value.items() if key not in _NOT_COMPARED}


def _error(problem: Json, status: int) -> Json:
    usual = "server" if status >= 500 else "graph"
    return {"type": _TYPES.get(status, usual), "status": status} | _report(problem)


def _report(problem: Json) -> Json:
    """Return the members of a problem that are the same in every call.

    A sentence may name an etag, so it is left out.
    """
    named: Json = {name: problem[name] for name in _PLACES if name in problem}
    if "errors" in problem:
        named["errors"] = [_report(error) for error in problem["errors"]]
    return named
