"""Cases of registered graphs, resident tensors and listings, and of calls refused before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from clients.conformance.bits import Json, bits_of, to_json
from clients.conformance.cases import Case
from clients.conformance.making.exchange_parts import (
    CALL,
    CREATED,
    DONE,
    DONE_STORED,
    ETAG,
    FEEDS,
    GRAPH_ID,
    OK,
    OK_STORED,
    ON_REGISTERED,
    REGISTERED,
    SEEN,
    SEEN_REGISTERED,
    SEEN_REGISTERING,
    STEPS,
    STORED,
    STORING,
    exchange,
    floats,
    node_tensor,
    number,
    raised,
    refused,
)
from clients.conformance.steps import leaf, on

_GONE: Final = refused("not_found", expected="the id of a registered graph")
_NOT_FOUND: Final = raised("not_found", 404, "not_found")
_FOUND: Final[Json] = {"status": 200, "json": REGISTERED}
_SUMMARY: Final[Json] = {
    "tensor_id": "w",
    "dtype": "float64",
    "shape": [2],
    "bytes": 16,
    "etag": ETAG,
    "durable": True,
}
_VECTOR: Final = floats(1.0, -2.0)
_INPUT: Final = raised("input")


def state_cases() -> Iterator[Case]:
    """Yield all cases."""
    yield from _registered()
    yield from _registered_and_gone()
    yield from _opsets()
    yield from _tensors()
    yield from _as_feeds()
    yield from _stores()
    yield from _listings()
    yield from _refused_before()


def _registered() -> Iterator[Case]:
    register: Json = {"do": "register", "steps": STEPS}
    returned = {"returned": {"graph_id": GRAPH_ID, "node_count": 2}}
    yield exchange("register-a-graph", [CREATED], [SEEN_REGISTERING], [returned], calls=[register])
    yield exchange("register-a-graph-that-is-there", [_FOUND], [SEEN_REGISTERING], [returned], calls=[register])
    described = SEEN_REGISTERING | {"body": SEEN_REGISTERING["body"] | {"description": "a square"}}
    calls = [register | {"description": "a square"}]
    yield exchange("register-with-a-description", [CREATED], [described], [returned], calls=calls)
    saw = [SEEN_REGISTERING, *[SEEN_REGISTERED] * 3]
    yield exchange("registered-once", [CREATED, OK, OK, OK], saw, [DONE] * 3, calls=[ON_REGISTERED] * 3)
    calls = [register, ON_REGISTERED]
    yield exchange("registered-by-hand", [_FOUND, OK], saw[:2], [returned, DONE], calls=calls)
    forward = {"method": "POST", "path": f"/v1/graphs/{GRAPH_ID}/forward", "body": {"feeds": FEEDS}}
    value: Json = {"json": {"values": OK["json"]["values"], "stats": OK["json"]["stats"]}}
    calls = [ON_REGISTERED, ON_REGISTERED | {"do": "forward"}]
    results = [DONE, {"returned": {"values": DONE["returned"]["values"]}}]
    yield exchange("registered-once-for-all-calls", [CREATED, OK, value], [*saw[:2], forward], results, calls=calls)
    calls = [ON_REGISTERED | {"form": "binary"}]
    binary = SEEN_REGISTERED | {"form": "binary"}
    yield exchange("registered-and-binary", [CREATED, OK], [SEEN_REGISTERING, binary], [DONE], calls=calls)
    full = refused("store_full")
    yield exchange("registered-nowhere", [full], saw[:1], [raised("store_full", 507)], calls=[ON_REGISTERED])
    wrong = refused("bad_reference", node=1, operand=0, pointer="/graph/nodes/1/operands/0")
    error = raised("graph", 422, "bad_reference", node=1, operand=0)
    yield exchange("registered-and-wrong", [wrong], saw[:1], [error], calls=[ON_REGISTERED])
    yield from _registered_twice()


def _registered_twice() -> Iterator[Case]:
    """Yield two graphs, each registered on its own, and a failed registration that the next call repeats."""
    other = [{"op": "parameter", "name": "w"}, {"op": "tanh", "operands": [0]}]
    second = SEEN_REGISTERING | {"body": {"graph": {"nodes": other}}}
    called = SEEN_REGISTERED | {"path": "/v1/graphs/" + "cd" * 32 + "/gradients"}
    created: Json = {"status": 201, "json": REGISTERED | {"graph_id": "cd" * 32}}
    calls = [ON_REGISTERED, ON_REGISTERED | {"graph": {"steps": other, "registered": True}}]
    saw = [SEEN_REGISTERING, SEEN_REGISTERED, second, called]
    yield exchange("registered-each-graph-by-itself", [CREATED, OK, created, OK], saw, [DONE] * 2, calls=calls)
    full = refused("store_full")
    saw = [SEEN_REGISTERING, SEEN_REGISTERING, SEEN_REGISTERED]
    results = [raised("store_full", 507), DONE]
    yield exchange("registered-by-the-next-call", [full, CREATED, OK], saw, results, calls=[ON_REGISTERED] * 2)


def _registered_and_gone() -> Iterator[Case]:
    saw = [SEEN_REGISTERING, SEEN_REGISTERED]
    one_call: Json = {"calls": [ON_REGISTERED]}
    yield exchange("registered-again-after-404", [CREATED, _GONE, CREATED, OK], saw * 2, [DONE], **one_call)
    yield exchange("registered-again-and-404", [CREATED, _GONE, CREATED, _GONE], saw * 2, [_NOT_FOUND], **one_call)
    two_calls: Json = {"calls": [ON_REGISTERED] * 2}
    answers = [CREATED, OK, _GONE, CREATED, OK]
    seen = [*saw, SEEN_REGISTERED, *saw]
    yield exchange("registered-again-by-a-later-call", answers, seen, [DONE] * 2, **two_calls)
    answers = [CREATED, _GONE, CREATED, OK, OK]
    yield exchange("registered-again-and-stays", answers, [*saw, *saw, SEEN_REGISTERED], [DONE] * 2, **two_calls)
    answers = [CREATED, _GONE, CREATED, OK, _GONE, CREATED, OK]
    seen = [*saw, *saw, SEEN_REGISTERED, *saw]
    yield exchange("registered-again-in-each-call", answers, seen, [DONE] * 2, **two_calls)
    none: Json = one_call | {"client": {"retries": 0}}
    yield exchange("registered-again-is-no-retry", [CREATED, _GONE, CREATED, OK], saw * 2, [DONE], **none)
    busy = refused("queue_full")
    answers = [CREATED, _GONE, busy, CREATED, busy, OK]
    seen = [*saw, SEEN_REGISTERING, SEEN_REGISTERING, SEEN_REGISTERED, SEEN_REGISTERED]
    yield exchange("registered-again-while-busy", answers, seen, [DONE], waits=[375, 375], **one_call)
    keyed = SEEN_REGISTERED | {"body": {"feeds": FEEDS, "store": STORING["store"]}, "idempotency_key": "case-1"}
    calls = [ON_REGISTERED | {"store": STORING["store"]}]
    answers = [CREATED, _GONE, CREATED, OK_STORED]
    yield exchange(
        "registered-again-with-the-same-key", answers, [SEEN_REGISTERING, keyed] * 2, [DONE_STORED], calls=calls
    )
    missing = refused("not_found", node=0, pointer="/feeds/0/tensor_id", got="w")
    calls = [ON_REGISTERED | {"feeds": [{"node": 0, "tensor_id": "w"}]}]
    fed = SEEN_REGISTERED | {"body": {"feeds": [{"node": 0, "tensor_id": "w"}]}}
    error = raised("not_found", 404, "not_found", node=0, pointer="/feeds/0/tensor_id")
    yield exchange("a-missing-tensor-is-no-missing-graph", [CREATED, missing], [saw[0], fed], [error], calls=calls)
    yield exchange("404-of-a-graph-that-was-sent", [_GONE], [SEEN], [_NOT_FOUND])
    page = {"status": 404, "headers": {"Content-Type": "text/html"}, "text": "Nothing here"}
    yield exchange("404-of-a-proxy", [CREATED, page], saw, [raised("not_found", 404)], **one_call)


def _opsets() -> Iterator[Case]:
    """Yield graphs that need opset 2, which the client states unless the program states one."""
    random_op, values = on("random_bits", 0, shape=[2]), bits_of(np.array([0, 2**32 - 1], "uint32"))
    leaf_of_words = [leaf("input", "key", dtype="uint32"), on("add", 0, 0)]
    constant: Json = {"op": "constant", "attrs": {"value": values}}
    graphs: dict[str, tuple[Json, Json]] = {
        "of-an-op": ({"steps": [leaf("input"), random_op]}, {"opset": 2}),
        "of-a-leaf": ({"steps": leaf_of_words}, {"opset": 2}),
        "of-a-cast": ({"steps": [leaf("input"), on("cast", 0, dtype="uint32")]}, {"opset": 2}),
        "of-a-constant": ({"steps": [constant, on("add", 0, 0)]}, {"opset": 2}),
        "unsaid": ({"steps": [leaf("input", dtype="int64"), on("cast", 0, dtype="int32")]}, {}),
        "of-an-unknown-op": ({"steps": [leaf("input"), on("an_op_of_tomorrow", 0, equation="uint32")]}, {}),
        "stated": ({"steps": [leaf("input"), random_op], "opset": 1}, {}),
        "stated-and-later": ({"steps": [leaf("input"), on("neg", 0)], "opset": 7}, {"opset": 7}),
    }
    for name, (stated, opset) in graphs.items():
        sent = {"graph": opset | {"nodes": stated["steps"]}}
        for form in ("json", "binary"):
            seen: Json = {"method": "POST", "path": "/v1/forward", "body": sent, "form": form}
            call = {"do": "forward", "graph": stated, "form": form}
            answer: Json = {"json": {"values": [], "stats": OK["json"]["stats"]}}
            yield exchange(f"opset-{name}-{form}", [answer], [seen], [{"returned": {"values": []}}], calls=[call])
    register: Json = {"do": "register", "steps": graphs["of-an-op"][0]["steps"]}
    seen = SEEN_REGISTERING | {"body": {"graph": {"opset": 2, "nodes": register["steps"]}}}
    returned = {"returned": {"graph_id": GRAPH_ID, "node_count": 2}}
    yield exchange("opset-registered", [CREATED], [seen], [returned], calls=[register])


def _tensors() -> Iterator[Case]:
    put: Json = {"do": "put", "name": "w", "tensor": _VECTOR}
    seen: Json = {"method": "PUT", "path": "/v1/tensors/w", "body": _VECTOR}
    created, returned = {"status": 201, "json": _SUMMARY}, {"returned": _SUMMARY}
    for form in ("json", "binary"):
        calls = [put | {"form": form}]
        yield exchange(f"put-{form}", [created], [seen | {"form": form}], [returned], calls=calls)
    large = bits_of(np.arange(600, dtype="float64"))
    seen_large = seen | {"body": large, "form": "binary"}
    yield exchange("put-large", [created], [seen_large], [returned], calls=[put | {"tensor": large}])
    for dtype in ("bool", "float16", "int64"):
        tensor = bits_of(np.array([[1, 0, 1]], dtype))
        calls = [put | {"tensor": tensor}]
        yield exchange(f"put-{dtype}", [created], [seen | {"body": tensor}], [returned], calls=calls)
    failed = refused("precondition_failed", got=ETAG)
    conditions: dict[str, tuple[Json, Json]] = {
        "if-match": ({"if_match": ETAG}, {"if-match": f'"{ETAG}"', "if-none-match": None}),
        "if-match-any": ({"if_match": "*"}, {"if-match": "*", "if-none-match": None}),
        "if-none-match": ({"if_none_match": "*"}, {"if-none-match": "*", "if-match": None}),
    }
    for name, (stated, headers) in conditions.items():
        conditional = seen | {"headers": headers, "idempotency_key": "case-1"}
        yield exchange(f"put-{name}", [created], [conditional], [returned], calls=[put | stated])
        error = raised("condition", 412, "precondition_failed", got=ETAG)
        yield exchange(f"put-{name}-that-fails", [failed], [conditional], [error], calls=[put | stated])
    yield exchange(
        "put-without-conditions", [created], [seen | {"headers": {"if-match": None}}], [returned], calls=[put]
    )
    yield from _gets()
    delete = {"method": "DELETE", "path": "/v1/tensors/w", "idempotency_key": "case-1"}
    calls = [{"do": "delete", "name": "w"}]
    yield exchange("delete", [{"json": _SUMMARY}], [delete], [returned], calls=calls)
    yield exchange("delete-what-is-not-there", [refused("not_found")], [delete], [_NOT_FOUND], calls=calls)
    calls = [{"do": "delete", "name": "w", "if_match": ETAG}]
    matched = delete | {"headers": {"if-match": f'"{ETAG}"'}}
    yield exchange("delete-if-match", [{"json": _SUMMARY}], [matched], [returned], calls=calls)


def _gets() -> Iterator[Case]:
    seen = {"method": "GET", "path": "/v1/tensors/w"}
    returned = {"returned": {"tensor_id": "w", "etag": ETAG, "tensor": _VECTOR}}
    written: Json = {"json": {"tensor_id": "w", "etag": ETAG, "tensor": to_json(_VECTOR)}}
    file: Json = {"file": {"response": {}, "tensors": {"w": _VECTOR}}, "headers": {"ETag": f'"{ETAG}"'}}
    for name, answer in (("json", written), ("file", file)):
        for form in ("json", "binary"):
            calls = [{"do": "get", "name": "w", "form": form}]
            yield exchange(f"get-{form}-answered-as-{name}", [answer], [seen], [returned], calls=calls)
    calls = [{"do": "get", "name": "w"}]
    missing = refused("not_found", expected="the name of a resident tensor", got="w")
    yield exchange("get-what-is-not-there", [missing], [seen], [_NOT_FOUND], calls=calls)
    yield exchange("get-while-busy", [refused("queue_full"), written], [seen] * 2, [returned], calls=calls, waits=[375])


def _as_feeds() -> Iterator[Case]:
    """Yield feeds that name resident tensors, beside feeds that carry theirs."""
    steps = [{"op": "input"}, {"op": "parameter", "name": "w"}, {"op": "mul", "operands": [0, 1]}]
    feeds = [node_tensor(0, number(3.0)), {"node": 1, "tensor_id": "a.b-c_9"}]
    body = {"graph": {"nodes": steps}, "feeds": feeds}
    for form in ("json", "binary"):
        calls = [CALL | {"graph": {"steps": steps}, "feeds": feeds, "form": form}]
        yield exchange(f"named-feed-{form}", [OK], [SEEN | {"body": body, "form": form}], [DONE], calls=calls)
    rows = [node_tensor(0, number(3.0)), {"node": 1, "tensor_id": "a.b-c_9", "rows": [2, 5]}]
    for form in ("json", "binary"):
        calls = [CALL | {"graph": {"steps": steps}, "feeds": rows, "form": form}]
        saw = [SEEN | {"body": body | {"feeds": rows}, "form": form}]
        yield exchange(f"rows-as-feed-{form}", [OK], saw, [DONE], calls=calls)
    named: Json = {"cotangent": number(2.0), "of": 2, "wrt": [1, 0], "outputs": [2]}
    for form in ("json", "binary"):
        calls = [CALL | {"graph": {"steps": steps}, "feeds": feeds, "form": form} | named]
        yield exchange(f"cotangent-{form}", [OK], [SEEN | {"body": body | named, "form": form}], [DONE], calls=calls)
    constant = [*steps, {"op": "constant", "attrs": {"value": _VECTOR}}, {"op": "add", "operands": [2, 3]}]
    with_constant = {"graph": {"nodes": constant}, "feeds": feeds}
    for form in ("json", "binary"):
        calls = [CALL | {"graph": {"steps": constant}, "feeds": feeds, "form": form}]
        yield exchange(f"constant-{form}", [OK], [SEEN | {"body": with_constant, "form": form}], [DONE], calls=calls)
    diagnosed = {"diagnose": True}
    yield exchange(
        "diagnose-travels", [OK], [SEEN | {"body": SEEN["body"] | diagnosed}], [DONE], calls=[CALL | diagnosed]
    )


def _stores() -> Iterator[Case]:
    stored = {
        "if-match": {"node": 1, "tensor_id": "kept", "if_match": ETAG},
        "if-match-any": {"node": 1, "tensor_id": "kept", "if_match": "*"},
        "if-absent": {"node": 1, "tensor_id": "kept", "if_match": ""},
        "not-durable": {"node": 1, "tensor_id": "kept", "durable": False},
        "gradient": {"node": 0, "tensor_id": "kept", "gradient": True},
    }
    for name, entry in stored.items():
        body = SEEN["body"] | {"store": [entry]}
        saw = [SEEN | {"body": body, "idempotency_key": "case-1"}]
        yield exchange(f"store-{name}", [OK_STORED], saw, [DONE_STORED], calls=[CALL | {"store": [entry]}])
    body = SEEN["body"] | {"store": STORING["store"]}
    stored_later = [STORED[0] | {"durable": False, "written_within_ms": 1000}]
    answer = {"json": OK["json"] | {"stored": stored_later}}
    saw = [SEEN | {"body": body, "idempotency_key": "case-1"}]
    results = [{"returned": DONE["returned"] | {"stored": stored_later}}]
    yield exchange("store-written-later", [answer], saw, results, calls=[STORING])
    failed = raised("condition", 412, "precondition_failed")
    yield exchange("store-that-fails", [refused("precondition_failed")], saw, [failed], calls=[STORING])
    full = raised("store_full", 507, "store_full")
    yield exchange("store-without-room", [refused("store_full")], saw, [full], calls=[STORING])


def _listings() -> Iterator[Case]:
    """Yield listings of several pages, each requested with the limit."""
    tensors = [_SUMMARY | {"tensor_id": name} for name in "abcde"]
    graphs = [{"graph_id": digit * 64, "node_count": 2} for digit in "12345"]
    for kind, name, listed in (("tensors", "tensor_id", tensors), ("graphs", "graph_id", graphs)):
        seen = {"method": "GET", "path": f"/v1/{kind}"}
        call = {"do": f"list_{kind}"}
        pages = [listed[:2], listed[2:4], listed[4:]]
        answers = [{"json": {kind: page, "next": page[-1][name]}} for page in pages[:-1]] + [
            {"json": {kind: pages[-1]}}
        ]
        after: list[Json] = [{}, {"after": listed[1][name]}, {"after": listed[3][name]}]
        results = [{"returned": {kind: listed}}]
        saw = [seen | {"query": query} for query in after]
        yield exchange(f"list-{kind}", answers, saw, results, calls=[call])
        saw = [seen | {"query": {"limit": "2"} | query} for query in after]
        yield exchange(f"list-{kind}-by-two", answers, saw, results, calls=[call | {"limit": 2}])
        nothing: list[Json] = [{"returned": {kind: []}}]
        yield exchange(f"list-no-{kind}", [{"json": {kind: []}}], [seen], nothing, calls=[call])
        busy = [answers[0], refused("queue_full"), *answers[1:]]
        saw = [seen | {"query": query} for query in (after[0], after[1], after[1], after[2])]
        yield exchange(f"list-{kind}-while-busy", busy, saw, results, calls=[call], waits=[375])


def _refused_before() -> Iterator[Case]:
    """Yield calls that send nothing, each followed by one that does."""
    unknown_dtype = {"dtype": "bfloat16", "shape": [], "hex": "00" * 2}
    short = {"dtype": "float64", "shape": [3], "hex": "00" * 16}
    vector = node_tensor("other", number(1.0))  # type: ignore[arg-type] # a node of another graph
    invalid: dict[str, Json] = {
        "feed-of-another-graph": CALL | {"feeds": [vector]},
        "of-another-graph": CALL | {"of": "other"},
        "wrt-another-graph": CALL | {"wrt": ["other"]},
        "output-of-another-graph": CALL | {"outputs": [1, "other"]},
        "store-of-another-graph": CALL | {"store": [{"node": "other", "tensor_id": "kept"}]},
        "tangent-of-another-graph": CALL | {"do": "jvp", "tangents": [vector]},
        "cotangent-of-another-graph": CALL | {"do": "vjp", "cotangents": [vector]},
        "vector-of-another-graph": CALL | {"do": "hvp", "vectors": [vector]},
        "mapped-of-another-graph": CALL | {"do": "batch", "mapped": ["other"]},
        "type-of-another-graph": {
            "do": "plan",
            "graph": CALL["graph"],
            "types": [{"node": "other", "dtype": "float64", "shape": []}],
        },
        "feed-of-an-unknown-dtype": CALL | {"feeds": [node_tensor(0, unknown_dtype)]},
        "feed-too-short": CALL | {"feeds": [node_tensor(0, short)]},
        "put-of-an-unknown-dtype": {"do": "put", "name": "w", "tensor": unknown_dtype},
        "put-too-short": {"do": "put", "name": "w", "tensor": short},
        "graph-with-nan": CALL | {"graph": {"steps": [STEPS[0], _nan()]}},
    }
    for name, call in invalid.items():
        yield exchange(f"refused-{name}", [OK], [SEEN], [_INPUT, DONE], calls=[call, CALL])


def _nan() -> Json:
    return {"op": "mul_scalar", "operands": [0], "attrs": {"scalar": {"float": "nan"}}}
