"""Cases of models: put, get, list and delete; conditions, keys and retries; and graphs in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from clients.conformance.bits import Json, bits_of
from clients.conformance.cases import Case
from clients.conformance.making.exchange_parts import (
    CREATED,
    ETAG,
    GRAPH_ID,
    SEEN_REGISTERING,
    STEPS,
    exchange,
    problem,
    raised,
    refused,
)
from clients.conformance.steps import leaf, on

_INPUTS: Final[list[Json]] = [
    {"name": "x.0", "node": 0, "dtype": "float64", "shape": [-1, 3]},
    {"name": "k", "node": 1, "dtype": "int64", "shape": []},
]
_OUTPUTS: Final[list[Json]] = [{"name": "y", "node": 4}, {"name": "same", "node": 4}, {"name": "loss", "node": 5}]
_BOUND: Final[list[Json]] = [{"node": 2, "tensor_id": "net.w"}, {"node": 3, "tensor_id": "net.b"}]
_STATED: Final[Json] = {"graph_id": GRAPH_ID, "inputs": _INPUTS, "outputs": _OUTPUTS, "bound": _BOUND}
_PUT: Final[Json] = {"do": "put_model", "name": "net"} | _STATED
_SEEN: Final[Json] = {"method": "PUT", "path": "/v1/models/net", "body": _STATED, "form": "json"}
_MODEL: Final[Json] = _STATED | {
    "name": "net",
    "etag": ETAG,
    "outputs": [
        _OUTPUTS[0] | {"dtype": "float64", "shape": [-1]},
        _OUTPUTS[1] | {"dtype": "float64", "shape": [-1]},
        _OUTPUTS[2] | {"dtype": "float32", "shape": []},
    ],
    "bound": [_BOUND[0] | {"dtype": "float64", "shape": [3, 2]}, _BOUND[1] | {"dtype": "float64", "shape": [2]}],
}
_RETURNED: Final[Json] = {"returned": _MODEL}
_CREATED: Final[Json] = {"status": 201, "json": _MODEL}
_FOUND: Final[Json] = {"json": _MODEL}
_GET: Final[Json] = {"do": "get_model", "name": "net"}
_SEEN_GET: Final[Json] = {"method": "GET", "path": "/v1/models/net"}
_DELETE: Final[Json] = {"do": "delete_model", "name": "net"}
_SEEN_DELETE: Final[Json] = {"method": "DELETE", "path": "/v1/models/net", "idempotency_key": "case-1"}
_BUSY: Final = refused("queue_full")
_LOST: Final[Json] = {"close": "before"}


def exchange_cases() -> Iterator[Case]:
    """Yield the cases of the scripted server."""
    yield from _put()
    yield from _conditions()
    yield from _tries()
    yield from _gets_and_deletes()
    yield from _listings()
    yield from _refusals()
    yield from _no_models()


def _put() -> Iterator[Case]:
    yield exchange("put-model", [_CREATED], [_SEEN], [_RETURNED], calls=[_PUT])
    yield exchange("put-model-in-place-of-another", [_FOUND], [_SEEN], [_RETURNED], calls=[_PUT])
    described = {"description": "a net, „quoted“"}
    seen = _SEEN | {"body": _STATED | described}
    answer, result = {"json": _MODEL | described}, {"returned": _MODEL | described}
    yield exchange("put-model-with-a-description", [answer], [seen], [result], calls=[_PUT | described])
    few: Json = {"inputs": [], "bound": []}
    seen = _SEEN | {"body": {"graph_id": GRAPH_ID, "outputs": _OUTPUTS}}
    answer, result = {"json": _MODEL | few}, {"returned": _MODEL | few}
    yield exchange("put-model-of-no-leaves", [answer], [seen], [result], calls=[_PUT | few])
    named = "a.b-c_9"
    seen, answer = _SEEN | {"path": f"/v1/models/{named}"}, {"json": _MODEL | {"name": named}}
    result = {"returned": {"name": named}}
    yield exchange("put-model-of-another-name", [answer], [seen], [result], calls=[_PUT | {"name": named}])
    fewer: Json = {"do": "put_model", "name": "net", "graph": {"steps": STEPS}}
    fewer |= {"inputs": [], "outputs": [{"name": "y", "node": 1}], "bound": [{"node": 0, "tensor_id": "w"}]}
    body = {"graph_id": GRAPH_ID, "outputs": fewer["outputs"], "bound": fewer["bound"]}
    saw = [SEEN_REGISTERING, _SEEN | {"body": body}]
    yield exchange("put-model-of-a-graph", [CREATED, _CREATED], saw, [_RETURNED], calls=[fewer])
    answers, saw = [CREATED, _CREATED, _FOUND], [*saw, saw[1]]
    yield exchange("put-model-of-a-graph-twice", answers, saw, [_RETURNED] * 2, calls=[fewer] * 2)


def _conditions() -> Iterator[Case]:
    stated: dict[str, tuple[Json, Json]] = {
        "if-match": ({"if_match": ETAG}, {"if-match": f'"{ETAG}"', "if-none-match": None}),
        "if-match-any": ({"if_match": "*"}, {"if-match": "*", "if-none-match": None}),
        "if-none-match": ({"if_none_match": "*"}, {"if-none-match": "*", "if-match": None}),
    }
    failed = refused("precondition_failed", got=ETAG)
    error = raised("condition", 412, "precondition_failed", got=ETAG)
    for name, (condition, headers) in stated.items():
        seen = _SEEN | {"headers": headers, "idempotency_key": "case-1"}
        yield exchange(f"put-model-{name}", [_CREATED], [seen], [_RETURNED], calls=[_PUT | condition])
        yield exchange(f"put-model-{name}-that-fails", [failed], [seen], [error], calls=[_PUT | condition])
    seen = _SEEN_DELETE | {"headers": {"if-match": f'"{ETAG}"'}}
    matched = _DELETE | {"if_match": ETAG}
    yield exchange("delete-model-if-match", [_FOUND], [seen], [_RETURNED], calls=[matched])
    yield exchange("delete-model-if-match-that-fails", [failed], [seen], [error], calls=[matched])


def _tries() -> Iterator[Case]:
    """Yield which calls are retried, with which key, and that all of them send a timeout."""
    absent = {"headers": {"if-none-match": "*"}}
    variants: dict[str, tuple[Json, Json]] = {
        "put-model-alone": (_PUT, _SEEN),
        "put-model-if-none-match": (_PUT | {"if_none_match": "*"}, _SEEN | absent | {"idempotency_key": "case-1"}),
        "get-model": (_GET, _SEEN_GET),
        "delete-model": (_DELETE, _SEEN_DELETE),
    }
    off: Json = {"client": {"idempotency": False}}
    for name, (call, seen) in variants.items():
        # Java's HTTP client retries a GET on its own, without a wait, if the connection closes before the response.
        failing = [_BUSY, _BUSY if call is _GET else _LOST]
        more: Json = {"calls": [call], "waits": [375, 750]}
        yield exchange(f"key-or-none-of-{name}", [*failing, _FOUND], [seen] * 3, [_RETURNED], **more)
        bare = {member: value for member, value in seen.items() if member != "idempotency_key"}
        if bare == seen:
            yield exchange(f"without-keys-{name}", [*failing, _FOUND], [bare] * 3, [_RETURNED], **more | off)
        else:
            once: Json = {"calls": [call]} | off
            yield exchange(f"without-keys-{name}", [_BUSY], [bare], [raised("overload", 503)], **once)
    limited: Json = {"client": {"timeout_ms": 5000}}
    timed = [_SEEN | {"query": {"timeout_ms": left}} for left in ("5000", "4625")]
    yield exchange("deadline-of-put-model", [_BUSY, _CREATED], timed, [_RETURNED], calls=[_PUT], waits=[375], **limited)
    whole: Json = {"query": {"timeout_ms": "5000"}}
    yield exchange("deadline-of-get-model", [_FOUND], [_SEEN_GET | whole], [_RETURNED], calls=[_GET], **limited)
    seen = _SEEN_DELETE | whole
    yield exchange("deadline-of-delete-model", [_FOUND], [seen], [_RETURNED], calls=[_DELETE], **limited)
    seen, listed = {"method": "GET", "path": "/v1/models"} | whole, {"models": [_MODEL]}
    calls = [{"do": "list_models"}]
    yield exchange(
        "deadline-of-list-models", [{"json": listed}], [seen], [{"returned": listed}], calls=calls, **limited
    )


def _gets_and_deletes() -> Iterator[Case]:
    missing = refused("not_found", expected="the name of a model", got="net")
    error = raised("not_found", 404, "not_found", got="net")
    yield exchange("get-model", [_FOUND], [_SEEN_GET], [_RETURNED], calls=[_GET])
    yield exchange("get-model-that-is-not-there", [missing], [_SEEN_GET], [error], calls=[_GET])
    yield exchange("delete-model", [_FOUND], [_SEEN_DELETE], [_RETURNED], calls=[_DELETE])
    yield exchange("delete-model-that-is-not-there", [missing], [_SEEN_DELETE], [error], calls=[_DELETE])


def _listings() -> Iterator[Case]:
    """Yield listings of several pages, each requested with the limit."""
    listed = [_MODEL | {"name": name} for name in "abcde"]
    pages = [listed[:2], listed[2:4], listed[4:]]
    answers: list[Json] = [{"json": {"models": page, "next": page[-1]["name"]}} for page in pages[:-1]]
    answers.append({"json": {"models": pages[-1]}})
    after: list[Json] = [{}, {"after": "b"}, {"after": "d"}]
    call, seen = {"do": "list_models"}, {"method": "GET", "path": "/v1/models"}
    results = [{"returned": {"models": listed}}]
    saw = [seen | {"query": query} for query in after]
    yield exchange("list-models", answers, saw, results, calls=[call])
    saw = [seen | {"query": {"limit": "2"} | query} for query in after]
    yield exchange("list-models-by-two", answers, saw, results, calls=[call | {"limit": 2}])
    none: list[Json] = [{"returned": {"models": []}}]
    yield exchange("list-no-models", [{"json": {"models": []}}], [seen], none, calls=[call])
    busy = [answers[0], _BUSY, *answers[1:]]
    saw = [seen | {"query": query} for query in (after[0], after[1], after[1], after[2])]
    yield exchange("list-models-while-busy", busy, saw, results, calls=[call], waits=[375])


def _refusals() -> Iterator[Case]:
    faults: list[tuple[str, Json]] = [
        ("unexpected_feed", {"node": 4, "pointer": "/inputs/0/node"}),
        ("missing_feed", {"node": 0, "pointer": "/graph/nodes/0"}),
        ("not_found", {"node": 2, "pointer": "/bound/0/tensor_id", "got": "net.w"}),
    ]
    errors = [problem(code, **where) for code, where in faults]
    several: Json = {"status": 422, "json": errors[0] | {"errors": errors}}
    reports: list[Json] = [
        {"status": each["status"], "code": code} | where for each, (code, where) in zip(errors, faults, strict=True)
    ]
    error = raised("graph", 422, "unexpected_feed", **faults[0][1], errors=reports)
    yield exchange("put-model-of-several-faults", [several], [_SEEN], [error], calls=[_PUT])
    missing = refused("not_found", pointer="/graph_id", got=GRAPH_ID)
    error = raised("not_found", 404, "not_found", pointer="/graph_id", got=GRAPH_ID)
    yield exchange("put-model-of-a-graph-that-is-not-there", [missing], [_SEEN], [error], calls=[_PUT])
    full, error = refused("store_full"), raised("store_full", 507, "store_full")
    yield exchange("put-model-without-room", [full], [_SEEN], [error], calls=[_PUT])
    delete: Json = {"do": "delete_graph", "graph": {"steps": STEPS}}
    seen = {"method": "DELETE", "path": f"/v1/graphs/{GRAPH_ID}", "idempotency_key": "case-1"}
    summary = {"graph_id": GRAPH_ID, "node_count": 2}
    saw, result = [SEEN_REGISTERING, seen], {"returned": summary}
    yield exchange("delete-graph", [CREATED, {"json": summary}], saw, [result], calls=[delete])
    error = raised("condition", 409, "in_use", got="models that use it: net")
    for name, used in {
        "in-use": refused("in_use", got="models that use it: net"),
        "in-use-with-a-time": refused("in_use", "1", got="models that use it: net"),
    }.items():
        yield exchange(f"delete-graph-{name}", [CREATED, used], saw, [error], calls=[delete])


def _no_models() -> Iterator[Case]:
    """Yield responses that are not valid models."""
    broken: dict[str, Any] = {
        "without-an-etag": {name: value for name, value in _MODEL.items() if name != "etag"},
        "without-inputs": {name: value for name, value in _MODEL.items() if name != "inputs"},
        "of-another-shape": _MODEL | {"inputs": [_INPUTS[0] | {"shape": "any"}]},
        "of-a-named-node": _MODEL | {"outputs": [_MODEL["outputs"][0] | {"node": "y"}]},
        "of-bound-words": _MODEL | {"bound": ["net.w"]},
    }
    for name, answer in broken.items():
        yield exchange(f"model-{name}", [{"json": answer}], [_SEEN_GET], [raised("transport")], calls=[_GET])


def live_cases() -> Iterator[Case]:
    """Yield the cases of the real server."""
    graph: Json = {
        "steps": [leaf("input", "x"), leaf("parameter", "w"), on("matmul", 0, 1), on("square", 2), on("mean", 3)]
    }
    tensor: Json = {"do": "put", "name": "line.w", "tensor": bits_of(np.array([1.0, -1.0]))}
    put: Json = {
        "do": "put_model",
        "name": "line",
        "graph": graph,
        "inputs": [{"name": "x", "node": 0, "dtype": "float64", "shape": [-1, 2]}],
        "outputs": [{"name": "y", "node": 2}, {"name": "loss", "node": 4}],
        "bound": [{"node": 1, "tensor_id": "line.w"}],
        "description": "a line through the origin",
    }
    get, delete, graphs = (
        {"do": "get_model", "name": "line"},
        {"do": "delete_model", "name": "line"},
        {"do": "delete_graph", "graph": graph},
    )
    yield _live("models", tensor, put, get, put | {"outputs": put["outputs"][:1]}, get, delete, get, delete)
    yield _live(
        "models-in-use",
        tensor,
        put,
        put | {"name": "other"},
        graphs,
        delete,
        graphs,
        {"do": "delete_model", "name": "other"},
        graphs,
    )
    three = [put | {"name": name} for name in "bca"]
    yield _live("models-listing", tensor, *three, {"do": "list_models", "limit": 2}, {"do": "list_models"})
    absent = put | {"if_none_match": "*"}
    wrong = "0" * 16
    yield _live(
        "models-conditions", tensor, absent, absent, put | {"if_match": "*"}, put | {"if_match": wrong},
        delete | {"if_match": wrong}, get,
    )  # fmt: skip
    yield _live(
        "models-without-leaves",
        put
        | {
            "graph": {"steps": [on("full", shape=[2], fill=3.0)]},
            "inputs": [],
            "outputs": [{"name": "y", "node": 0}],
            "bound": [],
        },
    )
    faults = put | {"inputs": [put["inputs"][0] | {"node": 2}], "bound": [put["bound"][0] | {"node": 3}]}
    yield _live("refused-model-of-several-faults", tensor, faults)
    yield _live("refused-model-of-no-graph", _of_no_graph(put))
    yield _live("refused-model-of-no-tensor", put)
    yield _live("refused-model-of-no-outputs", tensor, put | {"outputs": []})
    yield _live("refused-model-of-a-name", tensor, put | {"name": "-line"})


def _of_no_graph(put: Json) -> Json:
    return {name: value for name, value in put.items() if name != "graph"} | {"graph_id": GRAPH_ID}


def _live(name: str, *calls: Json) -> Case:
    return {"id": f"live-{name}", "kind": "live", "calls": list(calls)}
