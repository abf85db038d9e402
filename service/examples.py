"""Requests as the document shows them, and for every refusal a request that provokes it.

The reports shown beside them are not written down: they are what the server answers to these requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from service.errors import Refusal

Json = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """A refusal of one code, by a request: a JSON `body` or a `raw` one; or by a `head`, and then it is `stated`.

    Neither body nor head: a state of the server or of the connection, which no single request brings about.
    """

    code: str
    body: Json | None = None
    raw: str | None = None
    head: Mapping[str, Any] = field(default_factory=dict)
    stated: Refusal | None = None

    @property
    def request(self) -> Json:
        """What to send: `body` or `raw`, `path`, `query`, `method`, `headers`."""
        sent = {"body": self.body, "raw": self.raw, **self.head}
        return {name: value for name, value in sent.items() if value is not None}


def _stated(code: str, detail: str, head: Mapping[str, Any] | None = None, **more: Any) -> Failure:
    return Failure(code, head=head or {}, stated=Refusal(code, detail, **more))


def _feed(shape: list[int], data: list[float], node: int = 0, dtype: str = "float64") -> Json:
    return {"node": node, "tensor": {"dtype": dtype, "shape": shape, "data": data}}


_W: Final = {"op": "parameter", "name": "w"}
_NODES: Final[list[Json]] = [_W, {"op": "square", "operands": [0]}, {"op": "mean", "operands": [1]}]
_MEAN: Final[Json] = {"graph": {"nodes": _NODES}, "feeds": [_feed([2], [1.5, -2.0])]}
_TYPED: Final[Json] = {"graph": {"nodes": _NODES}, "types": [{"node": 0, "dtype": "float64", "shape": [2]}]}

#: for each call, requests that it answers; the first is what the failing ones are made from
REQUESTS: Final[Mapping[str, Mapping[str, Json]]] = {
    "gradients": {
        "the gradient of a mean of squares": _MEAN,
        "an inner node, with a cotangent": _MEAN
        | {
            "of": 1,
            "wrt": [0],
            "outputs": [1, 2],
            "cotangent": {"dtype": "float64", "shape": [2], "data": [1.0, 0.5]},
            "encoding": "base64",
        },
    },
    "forward": {"a mean of squares": _MEAN},
    "vjp": {
        "a weighted sum of the rows of a Jacobian": _MEAN | {"outputs": [1], "cotangents": [_feed([2], [1.0, 0.5], 1)]},
        "three of them at once": _MEAN
        | {"outputs": [1], "batched": True, "cotangents": [_feed([3, 2], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 1)]},
    },
    "jvp": {"how a mean of squares moves with w": _MEAN | {"tangents": [_feed([2], [1.0, 0.0])]}},
    "jacobian": {"of the squares by w": _MEAN | {"outputs": [1]}},
    "hvp": {"the Hessian of a mean of squares times a vector": _MEAN | {"vectors": [_feed([2], [1.0, 0.0])]}},
    "hessian": {"of a mean of squares": _MEAN},
    "batch": {
        "three values of w": _MEAN | {"mapped": [0], "feeds": [_feed([3, 2], [1.5, -2.0, 0.0, 1.0, 3.0, 4.0])]},
    },
    "plan": {"a mean of squares and its gradient": _TYPED},
    "check": {"the gradient of a mean of squares": _MEAN},
    "differentiate": {"a mean of squares": _TYPED},
}

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
READY: Final = (_stated("shutting_down", "the server is stopping and takes no new work"),)
READING: Final = (
    *ANY,
    _stated(
        "not_acceptable",
        "the answer is application/json, which Accept: text/csv rules out",
        {"headers": {"Accept": "text/csv"}},
        expected="application/json",
        got="text/csv",
    ),
)
GET_OP: Final = (
    _stated(
        "not_found",
        "there is no op called “additon”; did you mean add?",
        {"path": "/v1/ops/additon"},
        expected="an op",
        got="additon",
    ),
)
STATED: Final = (
    *ANY,
    *READY,
    _stated("queue_full", "the server already holds 66 requests, its limit; try again shortly"),
    _stated("deadline_exceeded", "the request was not finished within its 0.05 s"),
    _stated("request_timeout", "no byte of the body came for 10 s"),
    _stated(
        "body_too_large",
        "the body may have at most 67108864 bytes, but has 67108865 bytes",
        expected="at most 67108864 bytes",
        got="67108865 bytes",
    ),
    _stated(
        "not_acceptable",
        "the answer is application/json or application/vnd.safetensors, which Accept: text/csv rules out",
        {"headers": {"Accept": "text/csv"}},
        expected="application/json or application/vnd.safetensors",
        got="text/csv",
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

#: mistakes in a node of the graph that all examples share: code → position and what the node becomes
_MISTAKES: Final[Mapping[str, tuple[int, Json]]] = {
    "unknown_op": (1, {"op": "squared", "operands": [0]}),
    "bad_reference": (1, {"op": "square", "operands": [7]}),
    "operand_count": (1, {"op": "square", "operands": [0, 0]}),
    "bad_attribute": (2, {"op": "mean", "operands": [1], "attrs": {"axis": 0}}),
    "shape_mismatch": (0, _W | {"attrs": {"shape": [3]}}),
    "dtype_mismatch": (0, _W | {"attrs": {"dtype": "float32"}}),
    "over_budget": (1, {"op": "reshape", "operands": [0], "attrs": {"shape": [2, *[1] * 40]}}),
}
_OUT_OF_RANGE: Final[Json] = {"op": "gather", "operands": [0], "attrs": {"indices": [7, 7]}}
#: calls of which `of` must have one element
_SCALAR: Final = ("gradients", "hvp", "hessian", "batch", "plan", "check", "differentiate")


def failures(call: str) -> tuple[Failure, ...]:
    """Every refusal of a computing call, by a request that provokes it, where one alone does."""
    request = next(iter(REQUESTS[call].values()))
    mistaken = [Failure(code, _mistaken(request, *mistake)) for code, mistake in _MISTAKES.items()]
    wrong = _wrong_types(request) if "types" in request else _wrong_feeds(request)
    scalar = [Failure("non_scalar_output", request | {"of": 1})] if call in _SCALAR else []
    differentiable = [f for f in wrong if f.code != "not_differentiable" or call != "forward"]
    return (*STATED, *mistaken, *differentiable, *scalar, Failure("invalid_field", request | {"feed": []}))


def _mistaken(request: Json, position: int, node: Json) -> Json:
    return request | {"graph": {"nodes": [*_NODES[:position], node, *_NODES[position + 1 :]]}}


def _indexed(request: Json) -> Json:
    """The request with elements of w picked in place of squares: as node 2, behind the constant that picks them."""
    outside = {"op": "constant", "attrs": {"value": {"dtype": "int64", "shape": [2], "data": [0, 7]}}}
    picked = {"op": "gather", "operands": [0, 1]}
    moved = {"outputs": [2]} if "outputs" in request else {}
    if "cotangents" in request:
        moved["cotangents"] = [cotangent | {"node": 2} for cotangent in request["cotangents"]]
    return request | {"graph": {"nodes": [_W, outside, picked, {"op": "mean", "operands": [2]}]}, **moved}


def _wrong_feeds(request: Json) -> list[Failure]:
    """A value that is missing, one too many, one that is malformed, one that is not float; and an index outside."""
    (feed,) = request["feeds"]
    shape, data = feed["tensor"]["shape"], feed["tensor"]["data"]
    return [
        Failure("index_out_of_range", _indexed(request)),
        Failure("missing_feed", request | {"feeds": []}),
        Failure("unexpected_feed", request | {"feeds": [feed, _feed([], [1], 1)]}),
        Failure("bad_tensor", request | {"feeds": [_feed(shape, data[1:])]}),
        Failure("not_differentiable", request | {"feeds": [_feed(shape, [1] * len(data), dtype="int64")]}),
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
