"""Cases of the layouts of a Hessian: blocks, or one matrix with the offsets of its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from clients.conformance.bits import Json, bits_of
from clients.conformance.cases import Case
from clients.conformance.making.exchange_parts import (
    ANSWER,
    CALL,
    CREATED,
    GRAPH_ID,
    ON_REGISTERED,
    RETURNED,
    SEEN,
    SEEN_REGISTERED,
    SEEN_REGISTERING,
    STATS,
    exchange,
    node_tensor,
    number,
    raised,
    wire,
)
from clients.conformance.steps import leaf, on

_ELEMENTS: Final = bits_of(np.arange(9.0).reshape(3, 3))
_OFFSETS: Final[list[Json]] = [{"node": 1, "offset": 0, "size": 1}, {"node": 0, "offset": 1, "size": 2}]
_MATRIX: Final[Json] = {"offsets": _OFFSETS, "tensor": wire(_ELEMENTS)}
_BLOCK: Final[Json] = {"row": 1, "column": 0}
#: fields of the call
_AS_MATRIX: Final[Json] = {"wrt": [1, 0], "layout": "matrix"}
_NO_BLOCKS: Final[Json] = ANSWER | {"hessian": []}
_RETURNED: Final[Json] = RETURNED | {"hessian": [], "matrix": {"offsets": _OFFSETS, "tensor": _ELEMENTS}}


# -------------------------------------------------------------------- exchanges


def exchange_cases() -> Iterator[Case]:
    """Yield the cases of the scripted server."""
    yield _matrix("answered-as-json", {"json": _NO_BLOCKS | {"matrix": _MATRIX}}, _RETURNED)
    yield _matrix("answered-as-file", _file("matrix"), _RETURNED)
    new: Json = {"a_new_field": {"deep": [1, None, "x"]}}
    grown = new | {"offsets": [place | new for place in _OFFSETS], "tensor": wire(_ELEMENTS) | new}
    yield _matrix("with-fields-of-tomorrow", {"json": _NO_BLOCKS | {"matrix": grown}}, _RETURNED)
    yield exchange(
        "hessian-matrix-registered",
        [CREATED, {"json": _NO_BLOCKS | {"matrix": _MATRIX}}],
        [SEEN_REGISTERING, _seen(SEEN_REGISTERED, f"/v1/graphs/{GRAPH_ID}/hessian", _AS_MATRIX)],
        [{"returned": _RETURNED}],
        calls=[ON_REGISTERED | {"do": "hessian"} | _AS_MATRIX],
    )
    yield from _blocks()
    yield from _malformed()


def _seen(seen: Json, path: str, fields: Json) -> Json:
    return seen | {"path": path, "body": seen["body"] | fields}


def _hessian(name: str, answer: Json, result: Json, fields: Json) -> Case:
    seen = _seen(SEEN, "/v1/hessian", fields)
    return exchange(f"hessian-{name}", [answer], [seen], [result], calls=[CALL | {"do": "hessian"} | fields])


def _matrix(name: str, answer: Json, returned: Json) -> Case:
    return _hessian(f"matrix-{name}", answer, {"returned": returned}, _AS_MATRIX)


def _file(tensor_name: str) -> Json:
    """Return the answer in safetensors, with the matrix under this name."""
    entries: Json = {"values": [{"node": 1}], "gradients": [{"node": 0}], "disconnected": [], "hessian": []}
    tensors = {
        "values.1": RETURNED["values"][0]["tensor"],
        "gradients.0": RETURNED["gradients"][0]["tensor"],
        tensor_name: _ELEMENTS,
    }
    return {"file": {"response": entries | {"matrix": {"offsets": _OFFSETS}, "stats": STATS}, "tensors": tensors}}


def _blocks() -> Iterator[Case]:
    """Yield answers without a matrix: of the layout `blocks`, and of servers that know no other."""
    answer: Json = ANSWER | {"hessian": [_BLOCK | {"tensor": wire(number(2.0))}]}
    returned = {"returned": RETURNED | {"hessian": [_BLOCK | {"tensor": number(2.0)}], "matrix": None}}
    yield _hessian("blocks", {"json": answer}, returned, {"layout": "blocks"})
    yield _hessian("without-a-layout", {"json": answer}, returned, {})
    yield _hessian("without-a-matrix", {"json": answer}, returned, _AS_MATRIX)
    yield _hessian("with-a-matrix-null", {"json": answer | {"matrix": None}}, returned, {"layout": "blocks"})


def _malformed() -> Iterator[Case]:
    """Yield matrices without a tensor, and offsets that are not a list of nodes with an offset and a size."""
    place, places = _OFFSETS
    offsets: dict[str, Any] = {
        "a-number": 1,
        "null": None,
        "an-object": {},
        "a-list-of-numbers": [0, 1],
        "without-a-node": [{"offset": 0, "size": 1}, places],
        "without-an-offset": [{"node": 1, "size": 1}, places],
        "without-a-size": [{"node": 1, "offset": 0}, places],
        "with-a-string": [place | {"offset": "0"}, places],
        "with-a-fraction": [place | {"size": 0.5}, places],
    }
    short = wire(_ELEMENTS) | {"shape": [4, 4]}
    matrices: dict[str, Any] = {
        "a-number": 1,
        "a-list": [_MATRIX],
        "empty": {},
        "without-offsets": {"tensor": _MATRIX["tensor"]},
        "without-a-tensor": {"offsets": _OFFSETS},
        "with-a-tensor-null": _MATRIX | {"tensor": None},
        "with-a-tensor-a-list": _MATRIX | {"tensor": [1.0]},
        "with-a-tensor-too-short": _MATRIX | {"tensor": short},
        **{f"with-offsets-{name}": _MATRIX | {"offsets": stated} for name, stated in offsets.items()},
    }
    result = raised("transport")
    for name, matrix in matrices.items():
        yield _hessian(f"malformed-matrix-{name}", {"json": _NO_BLOCKS | {"matrix": matrix}}, result, _AS_MATRIX)
    yield _hessian("malformed-matrix-not-beside", _file("hessian"), result, _AS_MATRIX)


# -------------------------------------------------------------------- live


def live_cases() -> Iterator[Case]:
    """Yield the cases of a real server."""
    steps = [leaf("parameter", "A"), leaf("parameter", "b"), on("matmul", 0, 1), on("sin", 2), on("sum", 3)]
    a, b = np.array([[0.3, -1.2, 0.7], [1.1, 0.4, -0.6]]), np.array([0.5, -0.25, 2.0])
    calls: dict[str, Json] = {
        "matrix": {"layout": "matrix"},
        "matrix-in-the-order-of-wrt": {"layout": "matrix", "wrt": [1, 0]},
        "matrix-of-one-node": {"layout": "matrix", "wrt": [0]},
        "blocks": {"layout": "blocks"},
    }
    fed = [node_tensor(0, bits_of(a)), node_tensor(1, bits_of(b))]
    for form in ("json", "binary"):
        graph: Json = {"steps": steps} | ({"registered": True} if form == "binary" else {})
        call: Json = {"do": "hessian", "graph": graph, "form": form, "feeds": fed}
        for name, fields in calls.items():
            yield _live(f"hessian-{name}-{form}", call | fields)
    steps = [leaf("parameter", "x"), leaf("parameter", "y"), on("cast", 1, dtype="float64"), on("mul", 0, 2)]
    feeds = [node_tensor(0, number(1.0)), node_tensor(1, bits_of(np.array(2.0, "float32")))]
    mixed: Json = {"do": "hessian", "graph": {"steps": steps}, "feeds": feeds, "layout": "matrix"}
    yield _live("refused-matrix-of-several-dtypes", mixed)


def _live(name: str, call: Json) -> Case:
    return {"id": f"live-{name}", "kind": "live", "calls": [call]}
