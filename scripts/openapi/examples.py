"""Requests that cause the errors of the OpenAPI document, one for each error.

The problem reports in the document are not written by hand: they are the server's responses to these requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from starlette.datastructures import Headers

from engine import registry
from service.api.calls.description import MEAN, NODES, CallDescription, Json, W, feed
from service.api.json_reader import admit_nodes
from service.api.media import SAFETENSORS
from service.core.errors import Refusal, deadline_exceeded, queue_full, stopping
from service.core.keys.authentication import Keyholder
from service.core.keys.caller import ANONYMOUS, KeyScope, credential_of, missing_scope
from service.core.settings import Settings
from service.store.commits import unconfirmed
from service.store.fence import unseen
from service.store.tables import no_graph, table_full
from service.web.head import OriginPolicy, malformed, media_of, too_large, too_long
from service.web.pages.error_pages import Failure
from service.web.routes import no_such_op
from service.web.state import no_answer
from service.workers.process_pool import worker_died


def by_head(refusal: Refusal, head: Mapping[str, Any] | None = None) -> Failure:
    """Return a failure with this refusal, caused by a request with this `head`, or else by no single request."""
    return Failure(refusal.code, head=head or {}, refusal=refusal)


def refusal_of(refuse: Callable[[], object]) -> Refusal:
    """Return the refusal that a call raises."""
    try:
        refuse()
    except Refusal as refusal:
        return refusal
    raise AssertionError("nothing was refused")


def of_headers(method: str, headers: Mapping[str, str]) -> Failure:
    """Return the failure of a call whose headers state unsupported media types."""
    return by_head(refusal_of(lambda: media_of(method, "/v1/ops", Headers(headers))), {"headers": headers})


_CSV: Final = {"Accept": "text/csv"}
ANY: Final = (by_head(malformed()), by_head(too_large(16 << 10), {"headers": {"X-Filler": "x" * 17_000}}))
STOPPING: Final = by_head(stopping())
READY: Final = (STOPPING, by_head(no_answer()))
_ONLY_JSON: Final = of_headers("GET", _CSV)
READING: Final = (*ANY, _ONLY_JSON)
GET_OP: Final = (by_head(no_such_op("additon", registry().hint("additon")), {"path": "/v1/ops/additon"}),)
#: failure of every request that reads the state
UNSEEN: Final = by_head(unseen())
#: failure of every request that stores a resource
UNCONFIRMED: Final = by_head(unconfirmed())
#: failure of every request that waits for something other than a look at the state
LATE: Final = by_head(deadline_exceeded(0.05))
#: failures of every request that a worker runs
WAITING: Final = (
    STOPPING,
    UNSEEN,
    by_head(queue_full(66, 1)),
    by_head(worker_died()),
    LATE,
)
NOT_SPOKEN: Final = of_headers("POST", _CSV)
STATED: Final = (
    *ANY,
    *WAITING,
    NOT_SPOKEN,
    by_head(
        Refusal("request_timeout", "the body arrived too slowly: no byte for 10 s, or fewer than 240 bytes per second")
    ),
    by_head(too_long(64 << 20, f"{(64 << 20) + 1} bytes")),
    of_headers("POST", {"Content-Type": "text/csv"}),
    by_head(refusal_of(lambda: admit_nodes(100_001, 100_000))),
    Failure("invalid_json", raw='{"graph": [NaN]}'),
    Failure("duplicate_key", raw='{"graph": {"nodes": []}, "graph": {"nodes": []}}'),
    Failure("too_deep", raw="[" * 101 + "]" * 101),
)


def _spend() -> None:
    """Exceed the rate limit of a key by one request."""
    holder = Keyholder(ANONYMOUS, "10/s")
    for _ in range(11):
        holder.enter()


_ELSEWHERE: Final = {"Host": "elsewhere.example"}
#: failures of every path that needs a key, or whose `Host` header is checked
_CALLERS: Final = (
    by_head(
        refusal_of(lambda: OriginPolicy(Settings()).check(Headers(_ELSEWHERE), "http", None, visits=False)),
        {"headers": _ELSEWHERE},
    ),
    by_head(Refusal("unauthenticated", credential_of(()).complaint)),
    by_head(refusal_of(_spend)),
)
_NO_GRAPH: Final = "0" * 64
_UNKNOWN_GRAPH: Final = by_head(no_graph(_NO_GRAPH))
_REGISTERING: Final = (
    of_headers("GET", {"Accept": SAFETENSORS}),
    by_head(table_full("the server keeps 10000 graphs", "at most 10000 graphs")),
)

#: mistakes in a node of the shared graph: code → position of the node and its replacement
_MISTAKES: Final[Mapping[str, tuple[int, Json]]] = {
    "unknown_op": (1, {"op": "squared", "operands": [0]}),
    "bad_reference": (1, {"op": "square", "operands": [7]}),
    "operand_count": (1, {"op": "square", "operands": [0, 0]}),
    "bad_attribute": (2, {"op": "mean", "operands": [1], "attrs": {"axis": 0}}),
    "shape_mismatch": (0, W | {"attrs": {"shape": [3]}}),
    "dtype_mismatch": (0, W | {"attrs": {"dtype": "float32"}}),
    "over_budget": (1, {"op": "reshape", "operands": [0], "attrs": {"shape": [2, *[1] * 40]}}),
}


def failures(call: type[CallDescription]) -> tuple[Failure, ...]:
    """Return every error of a call that a single request can cause."""
    request = next(iter(call.examples.values()))
    mistaken = [Failure(code, _mistaken(request, *mistake)) for code, mistake in _MISTAKES.items()]
    wrong_values = _wrong_types(request) if "types" in request else _wrong_feeds(request)
    scalar = [Failure("non_scalar_output", request | {"of": 1})] if call.scalar else []
    differentiable = [f for f in wrong_values if f.code != "not_differentiable" or call.differentiates]
    return (*STATED, *mistaken, *differentiable, *scalar, Failure("invalid_field", request | {"feed": []}))


def denials(needed: KeyScope | None) -> tuple[Failure, ...]:
    """Return the errors of unauthorised callers, with and without API keys, if the operation needs this scope."""
    if needed is None:
        return ()
    other = KeyScope.READ if needed is not KeyScope.READ else KeyScope.WRITE
    return (*_CALLERS, Failure("forbidden", refusal=missing_scope(needed, [other])))


def unknown_graph(path: str) -> Failure:
    """Return the error of a path with `{graph_id}` for a graph that does not exist."""
    return replace(_UNKNOWN_GRAPH, head={"path": path.replace("{graph_id}", _NO_GRAPH)})


def failures_on_registered(call: type[CallDescription]) -> tuple[Failure, ...]:
    """Return every error of a call on the shared graph, if it is registered."""
    possible = (f for f in failures(call) if f.code != "too_many_nodes")
    return tuple(on_registered(f) for f in possible if f.body is None or f.body["graph"] == MEAN["graph"])


def on_registered(failure: Failure) -> Failure:
    """Return the same failure on a registered graph."""
    return replace(failure, body=None if failure.body is None else without_its_graph(failure.body))


def without_its_graph(body: Json) -> Json:
    """Return the body of the same request on a registered graph."""
    return {name: value for name, value in body.items() if name != "graph"}


def registration_failures() -> tuple[Failure, ...]:
    """Return every error of a registration."""
    graph = {"graph": MEAN["graph"]}
    type_errors = {"shape_mismatch", "dtype_mismatch", "over_budget", "operand_count"}
    mistaken = [Failure(code, _mistaken(graph, *m)) for code, m in _MISTAKES.items() if code not in type_errors]
    bad_tensor = {"dtype": "float64", "shape": [2], "data": [1]}
    constant = {"nodes": [{"op": "constant", "attrs": {"value": bad_tensor}}]}
    named = {"nodes": [W | {"name": "n" * 129}]}
    stated = [failure for failure in STATED if failure.code != "not_acceptable"]
    wrong_values = [Failure("bad_tensor", {"graph": constant}), Failure("invalid_field", {"graph": named})]
    return (*stated, *_REGISTERING, *mistaken, *wrong_values)


def uploading_failures(tensor: Json) -> tuple[Failure, ...]:
    """Return every error that a body with a single tensor can cause."""
    bad_tensor = Failure("bad_tensor", tensor | {"data": tensor["data"][1:]})
    large = Failure("over_budget", {"dtype": "float64", "shape": [1] * 40, "data": [1]})
    return (*answered_in_json(), bad_tensor, large)


def answered_in_json() -> tuple[Failure, ...]:
    """Return the errors that any body without a graph can cause, if the response can only be JSON."""
    stated = [failure for failure in STATED if failure.code not in ("not_acceptable", "too_many_nodes")]
    return (*stated, _ONLY_JSON)


def _mistaken(request: Json, position: int, node: Json) -> Json:
    return request | {"graph": {"nodes": [*NODES[:position], node, *NODES[position + 1 :]]}}


def _indexed(request: Json) -> Json:
    """Return the request with a `gather` of w as node 2, in place of the squares; one index is out of range."""
    outside = {"op": "constant", "attrs": {"value": {"dtype": "int64", "shape": [2], "data": [0, 7]}}}
    picked = {"op": "gather", "operands": [0, 1]}
    moved = {"outputs": [2]} if "outputs" in request else {}
    if "cotangents" in request:
        moved["cotangents"] = [cotangent | {"node": 2} for cotangent in request["cotangents"]]
    return request | {"graph": {"nodes": [W, outside, picked, {"op": "mean", "operands": [2]}]}, **moved}


def _wrong_feeds(request: Json) -> list[Failure]:
    """Return failures for an index out of range and for a missing, an unexpected, a malformed and an integer feed."""
    (stated,) = request["feeds"]
    shape, data = stated["tensor"]["shape"], stated["tensor"]["data"]
    return [
        Failure("index_out_of_range", _indexed(request)),
        Failure("missing_feed", request | {"feeds": []}),
        Failure("unexpected_feed", request | {"feeds": [stated, feed([], [1], 1)]}),
        Failure("bad_tensor", request | {"feeds": [feed(shape, data[1:])]}),
        Failure("not_differentiable", request | {"feeds": [feed(shape, [1] * len(data), dtype="int64")]}),
    ]


def _wrong_types(request: Json) -> list[Failure]:
    """Return the same mistakes in types, for calls that take types instead of values."""
    (type,) = request["types"]
    return [
        Failure("missing_feed", request | {"types": []}),
        Failure("unexpected_feed", request | {"types": [type, type | {"node": 1}]}),
        Failure("bad_tensor", request | {"types": [type | {"dtype": "float31"}]}),
        Failure("not_differentiable", request | {"types": [type | {"dtype": "int64"}]}),
    ]
