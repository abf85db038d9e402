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


def _graph(*nodes: Json, **more: Any) -> Json:
    return {"graph": {"nodes": list(nodes)}, **more}


def _feed(shape: list[int], data: list[float], node: int = 0, dtype: str = "float64") -> Json:
    return {"node": node, "tensor": {"dtype": dtype, "shape": shape, "data": data}}


_W: Final = {"op": "parameter", "name": "w"}
_FED: Final = [_feed([2], [1.5, -2.0])]
_MEAN: Final = _graph(_W, {"op": "square", "operands": [0]}, {"op": "mean", "operands": [1]}, feeds=_FED)

GRADIENTS: Final[Mapping[str, Json]] = {
    "the gradient of a mean of squares": _MEAN,
    "an inner node, with a cotangent": _MEAN
    | {
        "of": 1,
        "wrt": [0],
        "outputs": [1, 2],
        "cotangent": {"dtype": "float64", "shape": [2], "data": [1.0, 0.5]},
        "encoding": "base64",
    },
}
FORWARD: Final[Mapping[str, Json]] = {"a mean of squares": _MEAN}

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
COMPUTING: Final = (
    *READING,
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
        "unsupported_media_type",
        "a body of the type text/csv is not understood; send application/json in UTF-8",
        {"headers": {"Content-Type": "text/csv"}},
        expected="application/json",
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
    Failure(
        "over_budget", _graph(_W, {"op": "broadcast_to", "operands": [0], "attrs": {"shape": [10**15, 2]}}, feeds=_FED)
    ),
    Failure("unknown_op", _graph({"op": "additon"})),
    Failure("bad_reference", _graph(_W, {"op": "square", "operands": [1]})),
    Failure("operand_count", _graph(_W, {"op": "add", "operands": [0]}, feeds=_FED)),
    Failure("bad_attribute", _graph(_W, {"op": "sum", "operands": [0], "attrs": {"axis": 0}}, feeds=_FED)),
    Failure(
        "shape_mismatch",
        _graph(_W, _W, {"op": "add", "operands": [0, 1]}, feeds=[*_FED, _feed([3], [1, 2, 3], 1)]),
    ),
    Failure("dtype_mismatch", _graph({"op": "parameter", "attrs": {"dtype": "float32"}}, feeds=_FED)),
    Failure(
        "index_out_of_range",
        _graph(
            _W,
            {"op": "constant", "attrs": {"value": {"dtype": "int64", "shape": [1], "data": [7]}}},
            {"op": "gather", "operands": [0, 1]},
            {"op": "sum", "operands": [2]},
            feeds=_FED,
        ),
    ),
    Failure("missing_feed", _graph(_W)),
    Failure("unexpected_feed", _graph(_W, {"op": "square", "operands": [0]}, feeds=[*_FED, _feed([], [1], 1)])),
    Failure("bad_tensor", _graph(_W, feeds=[_feed([3], [1.5, -2.0])])),
    Failure("invalid_field", _graph(_W, feed=_FED)),
)
GRADIENTS_ONLY: Final = (
    Failure("non_scalar_output", _graph(_W, {"op": "square", "operands": [0]}, feeds=_FED)),
    Failure(
        "not_differentiable",
        _graph(_W, {"op": "sum", "operands": [0]}, feeds=[_feed([2], [1, 2], dtype="int64")]),
    ),
)
