"""Null fields: a field that is null is absent, wherever a request has an optional field."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import numpy as np
import orjson
import pytest
from typing_extensions import is_typeddict

from engine import registry
from schemas import GraphNode
from service.api.calls import calls
from tests.conftest import Client
from tests.service.api.safetensors_support import body as safetensors_body
from tests.service.support import SQUARES, Json, feed, node, problem, request, tensor

EXAMPLES = [(name, shown) for name, call in calls().items() for shown in call.examples]
NULL_TYPES = {"types": [{"node": 0, "dtype": "float64", "shape": None}]}
NO_DTYPE = {"feeds": [{"node": 0, "tensor": {"dtype": None, "shape": [1]}}]}
NO_SHAPE = {"feeds": [{"node": 0, "tensor": {"dtype": "bool", "shape": None}}]}


def with_nulls(message: Any, model: type) -> Any:
    """Return a message with a null for every optional field that it lacks, in all messages inside it, too."""
    if isinstance(message, list):
        return [with_nulls(entry, model) for entry in message]
    hints = get_type_hints(model, include_extras=True)
    optional = [name for name, hint in hints.items() if get_origin(hint) is NotRequired]
    nulls: Json = dict.fromkeys(name for name in optional if name not in message)
    if model is GraphNode and "attrs" in message:
        nulls["attrs"] = dict.fromkeys(registry().get(message["op"]).attrs) | message["attrs"]
    inner = {
        name: next((part for part in (hint, *get_args(hint)) if is_typeddict(part)), None)
        for name, hint in get_type_hints(model).items()
    }
    fields = {name: with_nulls(value, model) if (model := inner[name]) else value for name, value in message.items()}
    return fields | nulls


def answered(client: Client, call: str, body: Json) -> Json:
    """Return the response without the fields that differ from run to run."""
    response = client.post(f"/v1/{call}", json=body)
    assert response.status_code == 200, response.text
    fields: Json = response.json()
    for name in ("execute_ms", "plan_cached", "tier"):
        fields.get("stats", {}).pop(name, None)
    return fields


@pytest.mark.parametrize(("call", "shown"), EXAMPLES)
def test_null_equals_absent_for_every_optional_field(client: Client, call: str, shown: str) -> None:
    body = deepcopy(calls()[call].examples[shown])
    nulled = with_nulls(body, calls()[call].request)
    assert orjson.dumps(nulled).count(b"null") > 5
    assert answered(client, call, nulled) == answered(client, call, body)


def test_null_equals_absent_in_functions(client: Client) -> None:
    function: Json = {"nodes": [node("input"), node("square", 0)], "outputs": [1], "name": None}
    nodes = [
        node("parameter"),
        {"op": "call", "operands": [0], "attrs": {"body": 0, "derivative": None}},
        {"op": "get_output", "operands": [1], "attrs": {"index": 0}},
        node("sum", 2),
    ]
    body = {"graph": {"opset": 2, "functions": [function], "nodes": nodes}, "feeds": [feed(0, [2], [1, 2])]}
    assert answered(client, "gradients", body)["gradients"][0]["tensor"]["data"] == [2, 4]


def test_graphs_with_and_without_nulls_have_one_id(client: Client) -> None:
    graph = SQUARES["graph"]
    nulled = {"opset": None, "functions": None, "nodes": [with_nulls(each, GraphNode) for each in graph["nodes"]]}
    plain, other = (client.post("/v1/graphs", json={"graph": each}).json() for each in (graph, nulled))
    assert other["graph_id"] == plain["graph_id"]


def test_null_equals_absent_in_safetensors(client: Client) -> None:
    fields = {"graph": SQUARES["graph"], "feeds": None, "wrt": None, "encoding": None}
    sent = safetensors_body(fields, {"feeds.0": np.array([1.0, 2.0])})
    response = client.post("/v1/gradients", content=sent, headers={"Content-Type": "application/vnd.safetensors"})
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("nulls", [{"data_b64": None}, {"data": None, "data_b64": "AAAAAAAA8D8="}])
def test_null_payload_beside_the_other(client: Client, nulls: Json) -> None:
    one: Json = {"dtype": "float64", "shape": [1], "data": [1.0]} | nulls
    body = request(node("parameter"), node("sum", 0), feeds=[{"node": 0, "tensor": one}])
    assert answered(client, "gradients", body)["values"][0]["tensor"]["data"] == [1]


@pytest.mark.parametrize(
    ("call", "body", "place"),
    [
        ("gradients", {"graph": None}, "/graph"),
        ("gradients", {"graph": {"nodes": None}}, "/graph/nodes"),
        ("gradients", {"graph": {"nodes": [{"op": None}]}}, "/graph/nodes/0/op"),
        ("gradients", SQUARES | {"feeds": [{"node": None, "tensor": tensor([2], [1, 2])}]}, "/feeds/0/node"),
        ("gradients", SQUARES | NO_DTYPE, "/feeds/0/tensor/dtype"),
        ("gradients", SQUARES | NO_SHAPE, "/feeds/0/tensor/shape"),
        ("plan", {"graph": SQUARES["graph"]} | NULL_TYPES, "/types/0/shape"),
        ("gradients", SQUARES | {"store": [{"node": 0, "tensor_id": None}]}, "/store/0/tensor_id"),
    ],
)  # fmt: skip
def test_null_in_a_required_field_counts_as_missing(client: Client, call: str, body: Json, place: str) -> None:
    report = client.post(f"/v1/{call}", json=body).json()
    assert report["status"] == 422
    assert report["pointer"] == place
    assert "is required, but is missing or null" in report["detail"]


@pytest.mark.parametrize(
    "body",
    [
        request(node("parameter"), feeds=[feed(0, [2], [1, None])]),
        request(node("parameter"), feeds=[{"node": 0, "tensor": {"dtype": "float64", "shape": [None], "data": [1]}}]),
        request(node("parameter"), {"op": "sum", "operands": [None]}),
        SQUARES | {"wrt": [None]},
        SQUARES | {"feeds": [None]},
    ],
)
def test_null_in_a_list_is_an_error(client: Client, body: Json) -> None:
    assert client.post("/v1/gradients", json=body).status_code == 422


def test_empty_rows_count_as_absent(client: Client) -> None:
    assert client.request("PUT", "/v1/tensors/w", json=tensor([2], [1, 2])).status_code in (200, 201)
    body = {"graph": SQUARES["graph"], "feeds": [{"node": 0, "tensor_id": "w", "rows": []}]}
    for _ in range(2):  # the second one is a cached request
        assert answered(client, "gradients", body)["gradients"][0]["tensor"]["data"] == [2, 4]
    one = SQUARES | {"feeds": [feed(0, [2], [1, 2]) | {"rows": []}]}
    assert answered(client, "gradients", one)["gradients"][0]["tensor"]["data"] == [2, 4]


def test_null_fields_do_not_make_another_request(client: Client) -> None:
    """A call with an Idempotency-Key is replayed if it differs in null fields alone."""
    key = {"Idempotency-Key": "one", "Content-Type": "application/json"}
    sent = [
        b'{"dtype": "float64", "shape": [1], "data": [1.5]}',
        b'{"data_b64": null, "dtype": "float64", "shape": [1], "data": [1.5]}',
        b'{"dtype": "float64", "shape": [1], "data": [1.5], "data_b64": null}',
    ]
    answers = [client.request("PUT", "/v1/tensors/t", content=body, headers=key) for body in sent]
    assert [answer.status_code for answer in answers] == [answers[0].status_code] * 3
    assert [answer.headers.get("idempotency-replayed") for answer in answers] == [None, "true", "true"]
    problem(
        client.request("PUT", "/v1/tensors/t", content=sent[0].replace(b"1.5", b"2.5"), headers=key),
        422,
        "invalid_field",
    )
