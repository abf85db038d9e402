"""For every refusal a request that provokes it, as the document shows them.

The reports shown beside them are not written down: they are what the server answers to these requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from service.calls.definition import AnyCall, Json
from service.calls.sample import MEAN, NODES, W, feed
from service.errors import Refusal
from service.keys.caller import KeyScope, lacking
from service.pages.failure import Failure


def _stated(code: str, detail: str, head: Mapping[str, Any] | None = None, **more: Any) -> Failure:
    return Failure(code, head=head or {}, stated=Refusal(code, detail, **more))


ANY: Final = (
    _stated("bad_request_framing", "the request is not well-formed HTTP/1.1"),
    _stated(
        "headers_too_large",
        "the request line and headers may have at most 16384 bytes together",
        {"headers": {"X-Filler": "x" * 17_000}},
        expected="at most 16384 bytes",
        got="more",
    ),
)
STOPPING: Final = _stated("shutting_down", "the server is stopping and takes no new work")
READY: Final = (STOPPING, _stated("not_ready", "the workers do not answer; the log says why"))
_ONLY_JSON: Final = _stated(
    "not_acceptable",
    "the answer is application/json, which Accept: text/csv rules out",
    {"headers": {"Accept": "text/csv"}},
    expected="application/json",
    got="text/csv",
)
READING: Final = (*ANY, _ONLY_JSON)
GET_OP: Final = (
    _stated(
        "not_found",
        "there is no op called “additon”; did you mean add?",
        {"path": "/v1/ops/additon"},
        expected="an op",
        got="additon",
    ),
)
#: of whatever is answered of the state
UNSEEN: Final = _stated(
    "not_ready", "the place where the server keeps its state does not answer, so what it knows of it may be out of date"
)
#: of whatever keeps something
UNCONFIRMED: Final = _stated(
    "unconfirmed",
    "the place where the server keeps its state has not said whether this was kept; "
    "send it again with its Idempotency-Key, or read what is there",
)
#: of whatever a worker does
WAITING: Final = (
    STOPPING,
    UNSEEN,
    _stated("queue_full", "the server already holds 66 requests, its limit; try again shortly"),
    _stated("worker_died", "the worker process that computed this request ended; send it again"),
    _stated("deadline_exceeded", "the request was not finished within its 0.05 s"),
)
NOT_SPOKEN: Final = _stated(
    "not_acceptable",
    "the answer is application/json or application/vnd.safetensors, which Accept: text/csv rules out",
    {"headers": {"Accept": "text/csv"}},
    expected="application/json or application/vnd.safetensors",
    got="text/csv",
)
STATED: Final = (
    *ANY,
    *WAITING,
    NOT_SPOKEN,
    _stated("request_timeout", "no byte of the body came for 10 s"),
    _stated(
        "body_too_large",
        "the body may have at most 67108864 bytes, but has 67108865 bytes",
        expected="at most 67108864 bytes",
        got="67108865 bytes",
    ),
    _stated(
        "unsupported_media_type",
        "a body of the type text/csv is not understood; send application/json in UTF-8 or application/vnd.safetensors",
        {"headers": {"Content-Type": "text/csv"}},
        expected="application/json or application/vnd.safetensors",
        got="text/csv",
    ),
    _stated(
        "too_many_nodes",
        "the graph has 100001 nodes, and the limit is 100000",
        expected="at most 100000 nodes",
        got="100001 nodes",
    ),
    Failure("invalid_json", raw='{"graph": [NaN]}'),
    Failure("duplicate_key", raw='{"graph": {"nodes": []}, "graph": {"nodes": []}}'),
    Failure("too_deep", raw="[" * 101 + "]" * 101),
)

#: of any path that takes a key, or has to be called by a name that the server knows
_CALLERS: Final = (
    _stated(
        "misdirected",
        "the server is not known by the name “elsewhere.example”; call it localhost, or start it with --allowed-hosts",
        {"headers": {"Host": "elsewhere.example"}},
        expected="localhost, or a name of --allowed-hosts",
        got="elsewhere.example",
    ),
    _stated("unauthenticated", "the request has no key; send one as Authorization: Bearer KEY"),
    _stated(
        "rate_limited",
        "this key has used up its rate of 10 in 1 s; try again after the seconds in Retry-After",
        expected="at most 10 in 1 s",
        got="more",
    ),
)
_NO_GRAPH: Final = "0" * 64
_UNKNOWN_GRAPH: Final = _stated(
    "not_found",
    f"there is no graph “{_NO_GRAPH}”; POST /v1/graphs registers one, and GET /v1/graphs lists those that are kept",
    expected="the id of a registered graph",
    got=_NO_GRAPH,
)
_REGISTERING: Final = (
    _stated(
        "not_acceptable",
        "the answer is application/json, which Accept: application/vnd.safetensors rules out",
        {"headers": {"Accept": "application/vnd.safetensors"}},
        expected="application/json",
        got="application/vnd.safetensors",
    ),
    _stated(
        "store_full",
        "the server keeps 10000 graphs already, of at most 10000 graphs; delete one that is no longer needed",
        expected="at most 10000 graphs",
        got="one more",
    ),
)

#: mistakes in a node of the graph that all examples share: code → position and what the node becomes
_MISTAKES: Final[Mapping[str, tuple[int, Json]]] = {
    "unknown_op": (1, {"op": "squared", "operands": [0]}),
    "bad_reference": (1, {"op": "square", "operands": [7]}),
    "operand_count": (1, {"op": "square", "operands": [0, 0]}),
    "bad_attribute": (2, {"op": "mean", "operands": [1], "attrs": {"axis": 0}}),
    "shape_mismatch": (0, W | {"attrs": {"shape": [3]}}),
    "dtype_mismatch": (0, W | {"attrs": {"dtype": "float32"}}),
    "over_budget": (1, {"op": "reshape", "operands": [0], "attrs": {"shape": [2, *[1] * 40]}}),
}


def failures(call: AnyCall) -> tuple[Failure, ...]:
    """Every refusal of a call, by a request that provokes it, where one alone does."""
    request = next(iter(call.examples.values()))
    mistaken = [Failure(code, _mistaken(request, *mistake)) for code, mistake in _MISTAKES.items()]
    wrong = _wrong_types(request) if "types" in request else _wrong_feeds(request)
    scalar = [Failure("non_scalar_output", request | {"of": 1})] if call.scalar else []
    differentiable = [f for f in wrong if f.code != "not_differentiable" or call.differentiates]
    return (*STATED, *mistaken, *differentiable, *scalar, Failure("invalid_field", request | {"feed": []}))


def denials(needed: KeyScope | None) -> tuple[Failure, ...]:
    """What is refused of whoever asks: by a server with keys, where one has to be good for this, and by one without."""
    if needed is None:
        return ()
    other = KeyScope.READ if needed is not KeyScope.READ else KeyScope.WRITE
    return (*_CALLERS, Failure("forbidden", stated=lacking(needed, [other])))


def unknown_graph(path: str) -> Failure:
    """The refusal of a path, which has `{graph_id}` in it, for a graph that is not there."""
    return replace(_UNKNOWN_GRAPH, head={"path": path.replace("{graph_id}", _NO_GRAPH)})


def failures_on_registered(call: AnyCall) -> tuple[Failure, ...]:
    """Every refusal of a call on the graph that all examples share, once that is registered."""
    possible = (f for f in failures(call) if f.code != "too_many_nodes")
    return tuple(on_registered(f) for f in possible if f.body is None or f.body["graph"] == MEAN["graph"])


def on_registered(failure: Failure) -> Failure:
    """The same of a graph that is registered."""
    return replace(failure, body=None if failure.body is None else without_its_graph(failure.body))


def without_its_graph(body: Json) -> Json:
    """What is asked of a registered graph in place of this."""
    return {name: value for name, value in body.items() if name != "graph"}


def registration_failures() -> tuple[Failure, ...]:
    """Every refusal of a graph that is to be kept."""
    graph = {"graph": MEAN["graph"]}
    of_types = {"shape_mismatch", "dtype_mismatch", "over_budget", "operand_count"}
    mistaken = [Failure(code, _mistaken(graph, *m)) for code, m in _MISTAKES.items() if code not in of_types]
    bad = {"dtype": "float64", "shape": [2], "data": [1]}
    constant = {"nodes": [{"op": "constant", "attrs": {"value": bad}}]}
    named = {"nodes": [W | {"name": "n" * 129}]}
    stated = [failure for failure in STATED if failure.code != "not_acceptable"]
    wrong = [Failure("bad_tensor", {"graph": constant}), Failure("invalid_field", {"graph": named})]
    return (*stated, *_REGISTERING, *mistaken, *wrong)


def uploading_failures(tensor: Json) -> tuple[Failure, ...]:
    """Every refusal of a body that is a tensor alone."""
    stated = [failure for failure in STATED if failure.code not in ("not_acceptable", "too_many_nodes")]
    bad = Failure("bad_tensor", tensor | {"data": tensor["data"][1:]})
    large = Failure("over_budget", {"dtype": "float64", "shape": [1] * 40, "data": [1]})
    return (*stated, _ONLY_JSON, bad, large)


def _mistaken(request: Json, position: int, node: Json) -> Json:
    return request | {"graph": {"nodes": [*NODES[:position], node, *NODES[position + 1 :]]}}


def _indexed(request: Json) -> Json:
    """The request with elements of w picked in place of squares: as node 2, behind the constant that picks them."""
    outside = {"op": "constant", "attrs": {"value": {"dtype": "int64", "shape": [2], "data": [0, 7]}}}
    picked = {"op": "gather", "operands": [0, 1]}
    moved = {"outputs": [2]} if "outputs" in request else {}
    if "cotangents" in request:
        moved["cotangents"] = [cotangent | {"node": 2} for cotangent in request["cotangents"]]
    return request | {"graph": {"nodes": [W, outside, picked, {"op": "mean", "operands": [2]}]}, **moved}


def _wrong_feeds(request: Json) -> list[Failure]:
    """A value that is missing, one too many, one that is malformed, one that is not float; and an index outside."""
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
    """The same of types, where these stand for the values."""
    (type,) = request["types"]
    return [
        Failure("missing_feed", request | {"types": []}),
        Failure("unexpected_feed", request | {"types": [type, type | {"node": 1}]}),
        Failure("bad_tensor", request | {"types": [type | {"dtype": "float31"}]}),
        Failure("not_differentiable", request | {"types": [type | {"dtype": "int64"}]}),
    ]
