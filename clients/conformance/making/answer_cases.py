"""Cases of responses: all forms, invalid ones, other media types, too long ones, and those of a future server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from clients.conformance.bits import Bits, Json, bits_of, to_json
from clients.conformance.cases import Case
from clients.conformance.making.broken_files import LONGEST_HEADER
from clients.conformance.making.exchange_parts import (
    ANSWER,
    CALL,
    DONE,
    OK,
    RETURNED,
    SEEN,
    STATS,
    STEPS,
    exchange,
    floats,
    node_tensor,
    number,
    problem,
    raised,
    wire,
)
from clients.conformance.rewriting import DTYPE, OP

_TRANSPORT: Final = raised("transport")
_VALUES: Final = {"values.1": RETURNED["values"][0]["tensor"], "gradients.0": RETURNED["gradients"][0]["tensor"]}
#: the answer as a file: its entries have no tensors, which the file holds separately
_RESPONSE: Final[Json] = {"values": [{"node": 1}], "gradients": [{"node": 0}], "disconnected": [], "stats": STATS}
_FILE: Final[Json] = {"file": {"response": _RESPONSE, "tensors": _VALUES}}
_TYPES: Final = [{"node": 0, "dtype": "float64", "shape": [2]}]
_PRECISIONS: Final = ("float32", "tf32x3", "tf32", "bfloat16")
#: the smallest budget, and one that exceeds 32 bits
_BUDGETS: Final[Mapping[str, int]] = {"least": 1, "large": 2**40 + 1}
#: answers of calls that return no values
_FORECAST: Final[Json] = {
    "nodes": [{"node": 1, "op": OP["name"], "dtype": DTYPE, "shape": [2], "flops": 2, "bytes": 4}],
    "forward_flops": 2,
    "backward_flops": 4,
    "saved_bytes": 0,
    "peak_bytes": 4,
    "response_bytes": 256,
    "stops_gradient": [],
    "admitted": True,
    "limits": {"nodes": 100_000},
}
_CERTIFICATE: Final[Json] = {
    "passed": False,
    "errors": [{"node": 0, "relative_error": 2.5e-9}],
    "uncertified": [{"node": 1, "reason": "a_reason_of_tomorrow", "detail": "why"}],
    "directions": 4,
    "tolerance": 1e-6,
}


def answer_cases() -> Iterator[Case]:
    """Yield all cases."""
    yield from _forms()
    yield from _every_call()
    yield from _budgets()
    yield from _precisions()
    yield from _not_promised()
    yield from _lengths()
    yield from _future()
    yield from _api_keys()


def _answered(name: str, answer: Json, result: Json, **more: Any) -> Case:
    return exchange(name, [answer], [SEEN], [result], **more)


def _forms() -> Iterator[Case]:
    """Yield answers in another form than the request."""
    for form in ("json", "binary"):
        seen, calls = SEEN | {"form": form}, [CALL | {"form": form}]
        for name, answer in (("json", OK), ("file", _FILE)):
            yield exchange(f"form-{form}-answered-as-{name}", [answer], [seen], [DONE], calls=calls)
    large = node_tensor(0, bits_of(np.arange(512.0)))
    body = SEEN["body"] | {"feeds": [large]}
    calls = [CALL | {"feeds": [large]}]
    yield exchange("form-large-by-default", [_FILE], [SEEN | {"form": "binary", "body": body}], [DONE], calls=calls)
    yield exchange("form-small-by-default", [OK], [SEEN | {"form": "json"}], [DONE])
    media_types: dict[str, str] = {
        "charset": "application/json; charset=utf-8",
        "capitals": "Application/JSON",
        "spaces": "application/json ;  charset=UTF-8",
    }
    for name, kind in media_types.items():
        yield _answered(f"media-type-with-{name}", OK | {"headers": {"Content-Type": kind}}, DONE)
    chunked = {"chunked": True}
    yield _answered("answer-in-chunks", OK | chunked, DONE)
    yield _answered("file-in-chunks", _FILE | chunked, DONE)
    special = bits_of(np.array([np.nan, -0.0, -np.inf]).view("u8") + np.array([42, 0, 0], "u8")) | {"dtype": "float64"}
    packed = ANSWER | {"values": [{"node": 1, "tensor": to_json(special)}]}
    yield _answered(
        "answer-of-nan-and-infinity", {"json": packed}, {"returned": RETURNED | {"values": [node_tensor(1, special)]}}
    )
    result = {"returned": RETURNED | {"disconnected": [0]}}
    yield _answered("answer-with-disconnected", {"json": ANSWER | {"disconnected": [0]}}, result)
    stats = STATS | {
        "first_nonfinite": {"node": 1, "op": "square", "backward": False, "computed": "square", "operands": []}
    }
    result_with_stats = {
        "returned": RETURNED | {"stats": {name: stats[name] for name in ("device", "graph_id", "first_nonfinite")}}
    }
    yield _answered("answer-with-stats", {"json": ANSWER | {"stats": stats}}, result_with_stats, keep=["stats"])


def _every_call() -> Iterator[Case]:
    """Yield the answer of each call, as JSON and as a file."""
    for name, (call, entries) in _parts().items():
        sent = {"do": name, "graph": {"steps": STEPS}} | call
        seen = {"method": "POST", "path": f"/v1/{name}", "body": {"graph": {"nodes": STEPS}} | call}
        returned = {
            part: [location | {"tensor": bits} for location, bits in listed] for part, listed in entries.items()
        }
        written = {
            part: [location | {"tensor": wire(bits)} for location, bits in listed] for part, listed in entries.items()
        }
        response = {part: [location for location, _ in listed] for part, listed in entries.items()} | {"stats": STATS}
        tensors = {_name(part, location): bits for part, listed in entries.items() for location, bits in listed}
        for form, answer in (
            ("json", {"json": written | {"stats": STATS}}),
            ("file", {"file": {"response": response, "tensors": tensors}}),
        ):
            yield exchange(f"{name}-answered-as-{form}", [answer], [seen], [{"returned": returned}], calls=[sent])
    yield from _differentiate()


def _budgets() -> Iterator[Case]:
    """Yield calls with a memory budget, which each call that runs and `plan` accept."""
    for name, budget in _BUDGETS.items():
        fields = {"memory_budget": budget}
        seen = SEEN | {"body": SEEN["body"] | fields}
        yield exchange(f"memory-budget-{name}", [OK], [seen], [DONE], calls=[CALL | fields])
    yield from _with_every_call("memory-budget", {"memory_budget": 2**40 + 1}, {"recomputed_flops": 2})


def _precisions() -> Iterator[Case]:
    """Yield calls with a float32 precision, which each call that computes and `plan` accept."""
    for precision in _PRECISIONS:
        fields, stats = {"precision": precision}, {"precision": precision}
        seen, answer = SEEN | {"body": SEEN["body"] | fields}, {"json": ANSWER | {"stats": STATS | stats}}
        result = {"returned": RETURNED | {"stats": stats}}
        yield exchange(f"precision-{precision}", [answer], [seen], [result], calls=[CALL | fields], keep=["stats"])
    yield from _with_every_call("precision", {"precision": "tf32"}, {"precision": "tf32"})


def _with_every_call(field: str, fields_added: Json, stats: Json) -> Iterator[Case]:
    """Yield a field in each call that computes, and in `plan`, whose answer has no stats."""
    answers: dict[str, tuple[Json, Json]] = {
        name: (
            call,
            {part: [location | {"tensor": wire(bits)} for location, bits in row] for part, row in entries.items()},
        )
        for name, (call, entries) in _parts().items()
    }
    answers |= {
        "check": ({"feeds": [node_tensor(0, floats(1.0, 2.0))]}, _CERTIFICATE),
        "plan": ({"types": _TYPES}, _FORECAST),
    }
    for name, (call, answer) in answers.items():
        body = {"graph": {"nodes": STEPS}} | call | fields_added
        seen = {"method": "POST", "path": f"/v1/{name}", "body": body}
        calls = [{"do": name, "graph": {"steps": STEPS}} | call | fields_added]
        receipt: Json = {} if name == "plan" else {"stats": STATS | stats}
        yield exchange(f"{field}-of-{name}", [{"json": answer | receipt}], [seen], [{"returned": {}}], calls=calls)


def _name(part: str, location: Mapping[str, int]) -> str:
    return ".".join([part, *map(str, location.values())])


def _parts() -> dict[str, tuple[Json, dict[str, list[tuple[Json, Bits]]]]]:
    """Return the fields of each call, and the tensors of its answer."""
    feeds = [node_tensor(0, floats(1.0, 2.0))]
    value, gradient = ({"node": 1}, floats(1.0, 4.0)), ({"node": 0}, floats(2.0, 4.0))
    both = [({"row": row, "column": column}, floats(row, column)) for row in (0, 1) for column in (1, 0)]
    block = [({"of": 1, "wrt": 0}, bits_of(np.diag([2.0, 4.0])))]
    matrix = bits_of(np.array([[1.0], [2.0]]))
    return {
        "forward": ({"feeds": feeds, "outputs": [1, 0]}, {"values": [value, ({"node": 0}, floats(1.0, 2.0))]}),
        "vjp": (
            {"feeds": feeds, "cotangents": [node_tensor(1, floats(1.0, 1.0))], "wrt": [0]},
            {"values": [value], "gradients": [gradient]},
        ),
        "jvp": (
            {"feeds": feeds, "tangents": [node_tensor(0, floats(1.0, 1.0))]},
            {"values": [value], "tangents": [({"node": 1}, floats(2.0, 4.0))]},
        ),
        "jacobian": ({"feeds": feeds, "wrt": [0]}, {"values": [value], "jacobian": block}),
        "hvp": (
            {"feeds": feeds, "of": 1, "vectors": [node_tensor(0, floats(1.0, 0.0))]},
            {"values": [value], "gradients": [gradient], "hvp": [({"node": 0}, floats(2.0, 0.0))]},
        ),
        "hessian": (
            {"feeds": feeds, "of": 1, "wrt": [0, 1]},
            {"values": [value], "gradients": [gradient], "hessian": both},
        ),
        "batch": (
            {"feeds": [node_tensor(0, matrix)], "mapped": [0], "of": 1},
            {"values": [({"node": 1}, matrix)], "gradients": [({"node": 0}, matrix)]},
        ),
    }


def _differentiate() -> Iterator[Case]:
    """Yield answers that contain a graph, with its constant inline or separate."""
    constant = floats(2.0, 2.0)
    fields = {"types": _TYPES}
    nodes = [*STEPS, {"op": "constant", "attrs": {"value": to_json(constant)}}, {"op": "mul", "operands": [2, 0]}]
    bare_nodes = [*STEPS, {"op": "constant"}, {"op": "mul", "operands": [2, 0]}]
    rest: Json = {"gradients": [{"node": 0, "gradient_node": 3}], "disconnected": []}
    returned = rest | {"graph": json.dumps({"nodes": nodes})}
    tensors = {"constants.2": constant, "imagined.new": constant}
    file = {"response": rest | {"graph": {"opset": 1, "nodes": bare_nodes}}, "tensors": tensors}
    sent = {"do": "differentiate", "graph": {"steps": STEPS}} | fields
    seen = {"method": "POST", "path": "/v1/differentiate", "body": {"graph": {"nodes": STEPS}} | fields}
    for form, answer in (("json", {"json": rest | {"graph": {"opset": 1, "nodes": nodes}}}), ("file", {"file": file})):
        yield exchange(f"differentiate-answered-as-{form}", [answer], [seen], [{"returned": returned}], calls=[sent])


def _not_promised() -> Iterator[Case]:
    """Yield complete responses that are not valid answers, which are not retried."""
    html = {"headers": {"Content-Type": "text/html"}, "text": "<h1>Welcome</h1>"}
    json_type, file_type = (
        {"headers": {"Content-Type": kind}} for kind in ("application/json", "application/vnd.safetensors")
    )
    short = ANSWER["values"][0]["tensor"] | {"shape": [2]}
    other = ANSWER["values"][0]["tensor"] | {"dtype": DTYPE}
    huge = {"dtype": "float64", "shape": [2**62, 0], "data": []}
    invalid: dict[str, Json] = {
        "a-page": html,
        "a-page-that-is-json": {"headers": {"Content-Type": "text/plain"}, "text": json.dumps(ANSWER)},
        "an-image": {"headers": {"Content-Type": "image/png"}, "text": "PNG"},
        "half-of-json": json_type | {"text": json.dumps(ANSWER)[:-20]},
        "no-body": json_type | {"text": ""},
        "a-list": json_type | {"text": "[]"},
        "a-null": json_type | {"text": "null"},
        "json-called-a-file": file_type | {"text": json.dumps(ANSWER)},
        "a-file-called-json": json_type | {"text": "\x08\0\0\0\0\0\0\0{}      "},
        "half-of-a-file": {"hex": "ff00000000000000" + "7b7d"},
        "a-file-without-a-response": {"hex": "0800000000000000" + "7b7d202020202020"},
        "a-tensor-too-short": {"json": ANSWER | {"values": [{"node": 1, "tensor": short}]}},
        "a-tensor-of-an-unknown-dtype": {"json": ANSWER | {"values": [{"node": 1, "tensor": other}]}},
        "a-tensor-huge-and-empty": {"json": ANSWER | {"values": [{"node": 1, "tensor": huge}]}},
        "values-a-number": {"json": ANSWER | {"values": 1}},
        "an-entry-a-number": {"json": ANSWER | {"values": [1]}},
        "an-entry-without-a-tensor": {"json": ANSWER | {"values": [{"node": 1}]}},
        "a-tensor-null": {"json": ANSWER | {"values": [{"node": 1, "tensor": None}]}},
        "a-tensor-that-is-not-beside": {"file": {"response": _RESPONSE, "tensors": {"values.1": number(9.0)}}},
    }
    for name, answer in invalid.items():
        yield _answered(f"not-promised-{name}", answer, _TRANSPORT)
    for status in (301, 302, 307, 308):
        moved = OK | {"status": status, "headers": {"Location": "/elsewhere"}}
        yield _answered(f"not-promised-redirect-{status}", moved, _TRANSPORT, client={"api_key": "gs_of_the_case"})
    yield _answered("refused-by-a-page", html | {"status": 403}, raised("authentication", 403))
    yield _answered("refused-by-half-of-a-problem", _half_a_problem(), raised("graph", 422))
    other = problem("bad_tensor") | {"node": "first", "errors": None, "detail": 7}
    yield _answered("refused-by-members-of-other-types", _refusal(other), raised("graph", 422))
    yield _answered(
        "refused-by-a-code-of-another-type", _refusal(problem("bad_tensor") | {"code": 5}), raised("graph", 422)
    )
    yield _answered(
        "refused-by-errors-of-other-types", _refusal(problem("bad_tensor") | {"errors": [1]}), raised("graph", 422)
    )
    yield _answered("refused-by-a-list", json_type | {"status": 422, "text": "[1]"}, raised("graph", 422))


def _refusal(report: Json) -> Json:
    return {"status": 422, "json": report}


def _half_a_problem() -> Json:
    text = json.dumps(problem("bad_tensor"))[:-9]
    return {"status": 422, "headers": {"Content-Type": "application/problem+json"}, "text": text}


def _lengths() -> Iterator[Case]:
    """Yield answers of the maximum length, and of one byte more."""
    limit: Json = {"client": {"max_response_bytes": 20_000}}
    long = raised("too_large")
    for form, answer in (("json", OK), ("in-chunks", OK | {"chunked": True})):
        yield _answered(f"length-allowed-{form}", answer | {"pad": 20_000}, DONE, **limit)
        yield _answered(f"length-one-more-{form}", answer | {"pad": 20_001}, long, **limit)
        yield _answered(f"length-far-more-{form}", answer | {"pad": 4_000_000}, long, **limit)
    half = OK | {"pad": 30_000, "close": "middle"}
    yield _answered("length-stated-is-believed", half, long, **limit)
    large = bits_of(np.zeros(2500))
    file = {"response": _RESPONSE, "tensors": _VALUES | {"values.1": large}}
    yield _answered("length-of-a-file", {"file": file}, long, **limit)
    header = _FILE["file"] | {"header_bytes": LONGEST_HEADER + 8}
    yield _answered("length-of-a-header", {"file": header}, _TRANSPORT)
    refusal = {"status": 422, "json": problem("bad_tensor"), "pad": 20_001}
    yield _answered("length-of-a-refusal", refusal, long, **limit)


def _future() -> Iterator[Case]:
    """Yield unknown fields, ops, dtypes and codes."""
    new: Json = {"a_new_field": {"deep": [1, None, "x"]}}
    entries = [{**entry, **new, "tensor": entry["tensor"] | new} for entry in ANSWER["values"]]
    grown = ANSWER | new | {"values": entries, "stats": STATS | new | {"tier": "imagined"}}
    yield _answered("tomorrow-fields-everywhere", {"json": grown}, DONE)
    file = {"response": _RESPONSE | new, "tensors": _VALUES}
    yield _answered("tomorrow-fields-in-a-file", {"file": file}, DONE)
    file_with_more = {"response": _RESPONSE, "tensors": _VALUES | {"imagined.1.2": number(1.0)}}
    yield _answered("tomorrow-tensors-in-a-file", {"file": file_with_more}, DONE)
    extra = {"retry_of": "a", "quota": {"left": 9007199254740991, "unit": None}, "ratio": 0.5}
    report = {"status": 422, "json": problem("bad_tensor") | {"code": "brand_new"} | extra}
    yield _answered("tomorrow-members-of-a-problem", report, raised("graph", 422, "brand_new", extra=json.dumps(extra)))
    yield from _future_words(new)


def _future_words(new: Json) -> Iterator[Case]:
    """Yield unknown ops, dtypes and reasons, which a client returns unchanged."""
    grown = _FORECAST | {"limits": {"nodes": 100_000, "limit_of_tomorrow": 7}}
    plan: Json = {"do": "plan", "graph": {"steps": STEPS}, "types": _TYPES}
    body = {"graph": {"nodes": STEPS}, "types": _TYPES}
    yield _asked("op-and-dtype-in-a-forecast", plan, SEEN | {"path": "/v1/plan", "body": body}, grown, _FORECAST)
    row = {"tensor_id": "w", "dtype": DTYPE, "shape": [2], "bytes": 4, "etag": "00", "durable": True}
    seen = {"method": "GET", "path": "/v1/tensors"}
    listing = {"do": "list_tensors"}
    yield _asked("dtype-in-a-listing", listing, seen, {"tensors": [row | new]}, {"tensors": [row]})
    ops: Json = {"opset": 1, "ops": [OP | new]}
    seen = {"method": "GET", "path": "/v1/ops"}
    yield _asked("op-in-the-catalogue", {"do": "ops"}, seen, ops, {"opset": 1, "ops": [{"name": OP["name"]}]})
    seen = SEEN | {"path": "/v1/check"}
    yield _asked("reason-of-a-check", CALL | {"do": "check"}, seen, _CERTIFICATE | {"stats": STATS}, _CERTIFICATE)


def _asked(name: str, call: Json, seen: Json, answer: Json, returned: Json) -> Case:
    return exchange(f"tomorrow-{name}", [{"json": answer}], [seen], [{"returned": returned}], calls=[call])


def _api_keys() -> Iterator[Case]:
    """Yield calls with API keys, which accompany every request and are never disclosed."""
    key: Json = {"client": {"api_key": "gs_of-the.case~+/"}}
    yield _answered("api-key-as-an-argument", OK, DONE, **key)
    yield _answered("api-key-of-the-environment", OK, DONE)
    asks = {"headers": {"WWW-Authenticate": "Bearer"}}
    echoed = asks | {"status": 401, "json": problem("unauthenticated", detail="this key is not known")}
    yield _answered("api-key-that-is-refused", echoed, raised("authentication", 401, "unauthenticated"), **key)
    yield _answered("api-key-and-a-page", {"headers": {"Content-Type": "text/html"}, "text": "?"}, _TRANSPORT, **key)
