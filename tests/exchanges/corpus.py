"""Requests of every call, encoding and refusal, which can be stored and sent to any server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from itertools import count, islice
from typing import Final, NamedTuple
from urllib.parse import urlencode

from engine import registry
from scripts.openapi.examples import failures, failures_on_registered, registration_failures, uploading_failures
from service.api.calls import calls
from service.api.calls.description import CallDescription
from service.web.pages.error_pages import Failure
from service.web.pages.openapi import DOCUMENT_NAMES
from tests.contract.cases import Case, all_cases
from tests.fuzz.graphs import random_request
from tests.service.api.calls.test_derivative_calls import ASKED
from tests.service.api.safetensors_support import BINARY, KIND, body, split
from tests.service.support import SQUARES, Json, node, tensor
from tests.service.test_codes import REQUESTS
from tests.service.workers.test_confined_ops import asked

#: the seed of random requests
SEED: Final = 19
_JSON: Final = {"Content-Type": "application/json"}
#: largest body of a random request in bytes
_SMALL: Final = 1 << 16
_TENSOR_NAME: Final = "recorded"


class Request(NamedTuple):
    """A request; `{graph_id}` in its path stands for the id of the graph that was registered last."""

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes

    def line(self) -> str:
        """The request as a line of a file."""
        return json.dumps([self.method, self.path, dict(self.headers), base64.b64encode(self.content).decode()])

    @classmethod
    def of(cls, line: str) -> Request:
        """The request of a line."""
        method, path, headers, content = json.loads(line)
        return cls(method, path, headers, base64.b64decode(content))


def corpus(size: int) -> Iterator[Request]:
    """Yield `size` requests: first those from examples and tests, and then random ones."""
    return islice(_all(), size)


def _all() -> Iterator[Request]:
    yield from _pages()
    for name, call in calls().items():
        yield from _of_call(name, call)
    for code in REQUESTS:
        for wrong in REQUESTS[code]:
            yield from (_post(f"/v1/{name}", wrong) for name in ("gradients", "forward"))
    yield from _of_state()
    yield from map(_of_op, all_cases())
    yield from (drawn for drawn in map(_random_request, count()) if len(drawn.content) < _SMALL)


def _pages() -> Iterator[Request]:
    for path in (*(f"/{name}" for name in DOCUMENT_NAMES), "/v1/ops", "/health/live", "/v1/tensors", "/v1/graphs"):
        yield Request("GET", path, {}, b"")
    for op in (*registry().ops, "additon"):
        yield Request("GET", f"/v1/ops/{op}", {}, b"")


def _of_call(name: str, call: type[CallDescription]) -> Iterator[Request]:
    """The examples of a call in each encoding, and its refusals; and both again for a registered graph."""
    path, of_graph = f"/v1/{name}", f"/v1/graphs/{{graph_id}}/{name}"
    for example in (*call.examples.values(), ASKED.get(name, SQUARES)):
        yield _post(path, example)
        yield _post(path, example | {"encoding": "base64"})
        if "types" not in example:
            rest, tensors = split(example)
            yield Request("POST", path, BINARY, body(rest, tensors))
            yield Request("POST", path, {"Content-Type": KIND}, body(rest, tensors))
        yield _post("/v1/graphs", {"graph": example["graph"]})
        yield _post(of_graph, {key: value for key, value in example.items() if key != "graph"})
    yield from (_failing(path, failure) for failure in failures(call) if failure.request)
    yield from (_failing(of_graph, failure) for failure in failures_on_registered(call) if failure.request)


def _of_state() -> Iterator[Request]:
    path, vector = f"/v1/tensors/{_TENSOR_NAME}", tensor([2], [1.0, 2.0])
    yield from (_failing("/v1/graphs", failure) for failure in registration_failures() if failure.request)
    yield from (_failing(path, failure, "PUT") for failure in uploading_failures(vector) if failure.request)
    yield Request("PUT", path, _JSON, json.dumps(vector).encode())
    yield Request("GET", path, {}, b"")
    yield Request("GET", path, {"Accept": KIND}, b"")
    doubled = [node("parameter"), node("mul_scalar", 0, scalar=2.0), node("sum", 1)]
    fed = {"graph": {"nodes": doubled}, "feeds": [{"node": 0, "tensor_id": _TENSOR_NAME}]}
    yield _post("/v1/gradients", fed | {"store": [{"node": 1, "tensor_id": _TENSOR_NAME}]})
    yield _post("/v1/gradients", fed | {"feeds": [{"node": 0, "tensor_id": "absent"}]})
    yield Request("GET", path, {}, b"")
    yield Request("DELETE", path, {}, b"")
    yield Request("GET", path, {}, b"")


def _of_op(case: Case) -> Request:
    call, content = asked(case)
    return Request("POST", f"/v1/{call}", _JSON, content)


def _random_request(number: int) -> Request:
    """A random graph, in base64 or, every third one, in safetensors."""
    drawn = random_request(SEED, number)
    if number % 3 or "types" in drawn.body:
        return _post(f"/v1/{drawn.call}", drawn.body)
    rest, tensors = split(drawn.body)
    return Request("POST", f"/v1/{drawn.call}", BINARY, body(rest, tensors))


def _post(path: str, content: Json) -> Request:
    return Request("POST", path, _JSON, json.dumps(content).encode())


def _failing(path: str, failure: Failure, method: str = "POST") -> Request:
    sent = failure.request
    content = sent["raw"] if "raw" in sent else json.dumps(sent["body"]) if "body" in sent else "{}"
    query = "?" + urlencode(sent["query"]) if "query" in sent else ""
    method, path = sent.get("method", method), sent.get("path", path)
    return Request(method, path + query, _JSON | sent.get("headers", {}), content.encode())
