"""Parts of exchanges: a small graph, a call on it, the request that the server receives, and its answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from clients.conformance.bits import Bits, Json, bits_of
from clients.conformance.cases import Case
from service.core.errors import KINDS, Refusal

REQUEST_ID: Final = "of-the-case"
#: default waits of a client between tries, in milliseconds
WAITS: Final = (375, 750, 1500, 3000, 6000, 6000)
ETAG: Final = "0123456789abcdef"
GRAPH_ID: Final = "ab" * 32

STEPS: Final[list[Json]] = [{"op": "parameter", "name": "w"}, {"op": "square", "operands": [0]}]


def floats(*values: float) -> Bits:
    """Return a vector of float64."""
    return bits_of(np.array(values, "float64"))


def number(value: float) -> Bits:
    """Return a 0-d float64."""
    return bits_of(np.array(value))


def node_tensor(node: int, tensor: Bits) -> Json:
    """Return a tensor for a node."""
    return {"node": node, "tensor": tensor}


FEEDS: Final = [node_tensor(0, number(3.0))]
#: a call that computes the square of 3, and its gradient
CALL: Final[Json] = {"do": "gradients", "graph": {"steps": STEPS}, "feeds": FEEDS}
STORING: Final[Json] = CALL | {"store": [{"node": 1, "tensor_id": "kept"}]}
ON_REGISTERED: Final[Json] = CALL | {"graph": {"steps": STEPS, "registered": True}}

SEEN: Final[Json] = {
    "method": "POST",
    "path": "/v1/gradients",
    "body": {"graph": {"nodes": STEPS}, "feeds": FEEDS},
}
SEEN_STORING: Final[Json] = SEEN | {
    "body": SEEN["body"] | {"store": STORING["store"]},
    "idempotency_key": "case-1",
}
SEEN_REGISTERING: Final[Json] = {"method": "POST", "path": "/v1/graphs", "body": {"graph": {"nodes": STEPS}}}
SEEN_REGISTERED: Final[Json] = {
    "method": "POST",
    "path": f"/v1/graphs/{GRAPH_ID}/gradients",
    "body": {"feeds": FEEDS},
}

STATS: Final[Json] = {
    "device": "cpu",
    "plan_cached": True,
    "execute_ms": 0.25,
    "tier": "compiled",
    "peak_bytes": 48,
    "graph_id": GRAPH_ID,
    "opset": 1,
    "dtype": "float64",
    "versions": {"gradserve": "1.0.0", "numpy": "2.3.0"},
}


def wire(tensor: Bits) -> Json:
    """Return a float64 tensor with its elements as JSON numbers."""
    values = np.frombuffer(bytes.fromhex(tensor["hex"]), "<f8").tolist()
    return {"dtype": "float64", "shape": tensor["shape"], "data": values}


def wire_at(node: int, tensor: Bits) -> Json:
    """Return a tensor for a node, with its elements as JSON numbers."""
    return {"node": node, "tensor": wire(tensor)}


RETURNED: Final[Json] = {
    "values": [node_tensor(1, number(9.0))],
    "gradients": [node_tensor(0, number(6.0))],
    "disconnected": [],
}
ANSWER: Final[Json] = {
    "values": [wire_at(1, number(9.0))],
    "gradients": [wire_at(0, number(6.0))],
    "disconnected": [],
    "stats": STATS,
}
STORED: Final = [{"node": 1, "tensor_id": "kept", "etag": ETAG, "durable": True}]
REGISTERED: Final[Json] = {"graph_id": GRAPH_ID, "node_count": 2, "graph": {"nodes": STEPS}}

OK: Final[Json] = {"json": ANSWER}
OK_STORED: Final[Json] = {"json": ANSWER | {"stored": STORED}}
CREATED: Final[Json] = {"status": 201, "json": REGISTERED}
DONE: Final[Json] = {"returned": RETURNED}
DONE_STORED: Final[Json] = {"returned": RETURNED | {"stored": STORED}}


def problem(code: str, **members: Any) -> Json:
    """Return a problem of this code as the server writes it."""
    body: Json = json.loads(Refusal(code, f"a sentence about {code}").body(REQUEST_ID))
    return body | members


def refused(code: str, retry_after: str | None = None, **members: Any) -> Json:
    """Return the answer that carries a problem of this code."""
    answer: Json = {"status": KINDS[code].status, "json": problem(code, **members)}
    return answer if retry_after is None else answer | {"headers": {"Retry-After": retry_after}}


def raised(type: str, status: int | None = None, code: str | None = None, **members: Any) -> Json:
    """Return the result of a call that raises this error."""
    error = {"status": status, "code": code} | members
    return {"raised": {"type": type} | {name: value for name, value in error.items() if value is not None}}


def exchange(
    name: str,
    answers: Sequence[Json],
    saw: Sequence[Json],
    results: Sequence[Json],
    *,
    calls: Sequence[Json] = (CALL,),
    waits: Sequence[int] = (),
    **more: Any,
) -> Case:
    """Return a case. `more` are further members, such as `client`."""
    want = {"results": list(results), "waits": list(waits)}
    stated = {"calls": list(calls), "answers": list(answers), "saw": list(saw), "want": want}
    return {"id": f"exchange-{name}", "kind": "exchange"} | more | stated
