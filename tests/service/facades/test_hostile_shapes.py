"""Impossible shapes, at every place of every protocol that states a shape: refused, and no worker dies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import chain, cycle
from typing import Any, Final

import httpx
import pytest

from service.core.errors import UNREADABLE
from service.facades.openinference import LENGTH_HEADER
from tests.conftest import RunningServer
from tests.service.api.safetensors_support import BINARY, framed
from tests.service.support import Json, node, request

pytestmark = pytest.mark.slow
_EXTENTS: Final = (
    2**31, 2**60, 2**62, 2**63 - 1, 2**63, 2**64, 10**400, -1, -(2**63), -(2**64),
    True, False, 2.0, 0.5, 1e300, "2", None, [], {},
)  # fmt: skip
SHAPES: Final = [
    *chain.from_iterable(([e], [e, 0], [0, e], [e, e], [e, 2], [2, e], [0, e, e]) for e in _EXTENTS),
    *([1] * 65, [0] * 65, [2**62] * 33, [2**62] * 2_000, [0, *[2**62] * 2_000]),
    *([], [[]], [[2, 2]], None, 2, "2", True, {}, {"0": 2}),
]  # fmt: skip
_NODES = node("input"), node("square", 0), node("sum", 1)


def _encoded(shape: Any, **data: Any) -> Json:
    return {"object_type": "array", "shape": shape, "dtype": "float64", "data": data}


def _infer(shape: Any, outputs: Json, **more: Any) -> Json:
    return {"inputs": [{"name": "x", "shape": shape, "datatype": "FP64", **more}], "parameters": outputs}


_DATA: Final = {
    "base64": {"buffer": "", "encoding": "base64"},
    "json": {"buffer": [], "encoding": "json"},
    "json in rows": {"buffer": [[], []], "encoding": "json"},
}
_ONE: Final = _encoded([1, 1], buffer=[1.0], encoding="json")
_FIELDS: Final[dict[str, Json]] = {
    "apply": {},
    "jacobian": {"jac_inputs": ["x"], "jac_outputs": ["y"]},
    "jacobian_vector_product": {"jvp_inputs": ["x"], "jvp_outputs": ["y"]},
    "vector_jacobian_product": {"vjp_inputs": ["x"], "vjp_outputs": ["y"]},
}
_VECTORS: Final = {
    "jacobian_vector_product": ("tangent_vector", "x"),
    "vector_jacobian_product": ("cotangent_vector", "y"),
}


def _tesseract(call: str, of_vector: bool, data: str) -> Callable[[Any], tuple[str, Json]]:
    def body(shape: Any) -> tuple[str, Json]:
        array = _encoded(shape, **_DATA[data])
        field, name = _VECTORS.get(call, ("", ""))
        vectors = {field: {name: array if of_vector else _ONE}} if field else {}
        return f"/tesseract/free/{call}", {"inputs": {"x": _ONE if of_vector else array}, **_FIELDS[call], **vectors}

    return body


def _umbridge(field: str) -> Callable[[Any], tuple[str, Json]]:
    good: Json = {"name": "fixed", "input": [[1.0, 2.0]], "outWrt": 0, "inWrt": 0, "sens": [1.0, 1.0]}
    return lambda shape: ("/Gradient", {**good, field: shape})


def _feed(shape: Any, **data: Any) -> tuple[str, Json]:
    graph = request(*_NODES, feeds=[{"node": 0, "tensor": {"dtype": "float64", "shape": shape, **data}}])
    return "/v1/forward", graph


#: by place: the path and the JSON of a request that states a shape at that place
PLACES: Final[dict[str, Callable[[Any], tuple[str, Json]]]] = {
    **{
        f"openinference: {name}, answered as {answered}": (
            lambda shape, more=more, outputs={"binary_data_output": answered == "bytes"}: (
                "/v2/models/free/infer",
                _infer(shape, outputs, **more),
            )
        )
        for answered in ("json", "bytes")
        for name, more in (
            ("flat", {"data": []}),
            ("rows", {"data": [[], []]}),
            ("a number", {"data": [1.0]}),
            ("bytes", {"parameters": {"binary_data_size": 0}}),
        )
    },
    **{
        f"tesseract: {call}, {'a vector' if of_vector else 'an input'} as {data}": _tesseract(call, of_vector, data)
        for call in _FIELDS
        for of_vector in ((False, True) if call in _VECTORS else (False,))
        for data in _DATA
    },
    "tesseract: abstract_eval": lambda shape: (
        "/tesseract/free/abstract_eval",
        {"inputs": {"x": {"shape": shape, "dtype": "float64"}}},
    ),
    "tesseract: the shape in place of an array": lambda shape: ("/tesseract/free/apply", {"inputs": {"x": shape}}),
    **{f"umbridge: {field}": _umbridge(field) for field in ("input", "outWrt", "inWrt", "sens", "name", "config")},
    "v1: a feed": lambda shape: _feed(shape, data=[]),
    "v1: a feed as base64": lambda shape: _feed(shape, data_b64=""),
    "v1: a constant": lambda shape: (
        "/v1/forward",
        request(node("constant", value={"dtype": "float64", "shape": shape, "data": []})),
    ),
    "v1: a type": lambda shape: (
        "/v1/plan",
        request(*_NODES, types=[{"node": 0, "dtype": "float64", "shape": shape}]) | {"feeds": []},
    ),
}


@pytest.fixture(scope="module")
def client(start_server: Callable[..., RunningServer]) -> Iterator[httpx.Client]:
    """Client of a server with one worker, all facades, and a model with free extents."""
    server = start_server("--facades", "umbridge,openinference,tesseract", "--workers", "1", "--state", "memory")
    with httpx.Client(base_url=server.url, timeout=60) as client:
        graph_id = client.post("/v1/graphs", json={"graph": {"nodes": _NODES}}).json()["graph_id"]
        for name, shape in (("free", [-1, -1]), ("fixed", [2])):
            inputs = [{"name": "x", "node": 0, "dtype": "float64", "shape": shape}]
            body = {"graph_id": graph_id, "inputs": inputs, "outputs": [{"name": "y", "node": 1}]}
            assert client.put(f"/v1/models/{name}", json=body).is_success
        yield client


def restarts(client: httpx.Client) -> float:
    """Number of workers that were replaced, for any reason."""
    return sum(
        map(
            float,
            re.findall(r"^gradserve_worker_restarts_total(?:{.*})? (.*)$", client.get("/metrics").text, re.MULTILINE),
        )
    )


def check(answer: httpx.Response, shape: object) -> None:
    shown = f"{shape}"[:80]
    assert answer.status_code < 500, (shown, answer.text[:300])
    assert UNREADABLE not in answer.text, shown
    if answer.status_code >= 400:
        assert len(answer.content) < 3000, shown


@pytest.mark.parametrize("place", PLACES)
def test_hostile_shape_in_json_costs_no_worker(client: httpx.Client, place: str) -> None:
    for shape, accept in zip(SHAPES, cycle(("application/json", "*/*")), strict=False):
        path, body = PLACES[place](shape)
        text = json.dumps(body).encode()
        headers = {"Accept": accept, "Content-Type": "application/json", LENGTH_HEADER: f"{len(text)}"}
        check(client.post(path, content=text, headers=headers), shape)
    assert restarts(client) == 0


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_hostile_shape_in_safetensors_costs_no_worker(client: httpx.Client, method: str) -> None:
    for dtype in ("F64", "BOOL", "C64"):
        for shape in SHAPES:
            metadata = {"__metadata__": {"request": json.dumps(request(*_NODES))}} if method == "POST" else {}
            header = metadata | {"feeds.0": {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]}}
            path = "/v1/forward" if method == "POST" else "/v1/tensors/hostile"
            answer = client.request(method, path, content=framed(json.dumps(header).encode(), b""), headers=BINARY)
            check(answer, shape)
    assert restarts(client) == 0


def test_hostile_shape_of_a_resource_costs_no_worker(client: httpx.Client) -> None:
    graph_id = client.get("/v1/models/free").json()["graph_id"]
    for shape in SHAPES:
        tensor = {"dtype": "float64", "shape": shape, "data": []}
        check(client.put("/v1/tensors/hostile", json=tensor), shape)
        inputs = [{"name": "x", "node": 0, "dtype": "float64", "shape": shape}]
        body = {"graph_id": graph_id, "inputs": inputs, "outputs": [{"name": "y", "node": 1}]}
        check(client.put("/v1/models/hostile", json=body), shape)
    assert restarts(client) == 0
