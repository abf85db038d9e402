"""Opset 2 on the wire: its ops and dtypes, and the hint that opset 1 gives for them."""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from tests.conftest import Client
from tests.service.support import node, problem

SEED = {"node": 0, "tensor": {"dtype": "int64", "shape": [], "data": [42]}}
UINT32_TENSOR = {"dtype": "uint32", "shape": [2], "data": [0, 2**32 - 1]}
KEY_FEED = {"node": 0, "tensor": UINT32_TENSOR}
HINT = 'needs opset 2: add "opset": 2 to the graph, which uses opset 1'


def graph(*nodes: dict[str, Any], opset: int | None = 2) -> dict[str, Any]:
    return {"nodes": list(nodes)} | ({} if opset is None else {"opset": opset})


def test_opset_2_graph_is_answered_with_its_own_graph_id(client: Client) -> None:
    sent = graph(node("input"), node("random_key", 0))
    answer = client.post("/v1/forward", json={"graph": sent, "feeds": [SEED]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["values"] == [{"node": 1, "tensor": {"dtype": "uint32", "shape": [2], "data": [0, 42]}}]
    stats = answer.json()["stats"]
    text = '{"nodes":[{"op":"input"},{"op":"random_key","operands":[0]}],"opset":2}'
    assert (stats["opset"], stats["graph_id"]) == (2, sha256(text.encode()).hexdigest())


def test_graph_id_depends_on_the_opset(client: Client) -> None:
    nodes = [node("input"), node("exp", 0)]
    feeds = [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [0]}}]
    answers = [
        client.post("/v1/forward", json={"graph": graph(*nodes, opset=opset), "feeds": feeds}).json()
        for opset in (None, 1, 2)
    ]
    assert answers[0]["values"] == answers[1]["values"] == answers[2]["values"]
    assert [each["stats"]["opset"] for each in answers] == [1, 1, 2]
    assert answers[0]["stats"]["graph_id"] == answers[1]["stats"]["graph_id"] != answers[2]["stats"]["graph_id"]


def test_uint32_round_trip(client: Client) -> None:
    packed = base64.b64encode(np.array(UINT32_TENSOR["data"], "<u4").tobytes()).decode()
    for tensor in (UINT32_TENSOR, {"dtype": "uint32", "shape": [2], "data_b64": packed}):
        body = {"graph": graph(node("input"), node("identity", 0)), "feeds": [{"node": 0, "tensor": tensor}]}
        assert client.post("/v1/forward", json=body).json()["values"][0]["tensor"] == UINT32_TENSOR


@pytest.mark.parametrize("wrong", [-1, 2**32, 0.5])
def test_value_beyond_uint32_is_refused(client: Client, wrong: float) -> None:
    tensor = {"dtype": "uint32", "shape": [1], "data": [wrong]}
    body = {"graph": graph(node("input")), "feeds": [{"node": 0, "tensor": tensor}]}
    problem(client.post("/v1/forward", json=body), 422, "bad_tensor")


@pytest.mark.parametrize(
    ("nodes", "feeds", "code", "detail"),
    [
        (
            [node("input"), node("random_key", 0)], [SEED], "unknown_op",
            f"node 1 (random_key): the op random_key {HINT}",
        ),
        ([node("input")], [KEY_FEED], "dtype_mismatch", f"node 0 (input): the feed is uint32, which {HINT}"),
        (
            [node("constant", value=UINT32_TENSOR)], [], "dtype_mismatch",
            f"node 0 (constant): attribute value is uint32, which {HINT}",
        ),
        (
            [node("full", dtype="uint32")], [], "dtype_mismatch",
            f"node 0 (full): attribute dtype is uint32, which {HINT}",
        ),
        (
            [node("input", dtype="uint32")], [KEY_FEED], "dtype_mismatch",
            f"node 0 (input): attribute dtype is uint32, which {HINT}",
        ),
    ],
    ids=["op", "feed", "constant", "result", "leaf"],
)  # fmt: skip
@pytest.mark.parametrize("opset", [None, 1])
def test_opset_1_graph_gets_a_hint_about_opset_2(
    client: Client, opset: int | None, nodes: list[Any], feeds: list[Any], code: str, detail: str
) -> None:
    answer = client.post("/v1/forward", json={"graph": graph(*nodes, opset=opset), "feeds": feeds})
    report = problem(answer, 422, code)
    assert (report["detail"], report["node"]) == (detail, len(nodes) - 1)
    assert client.post("/v1/forward", json={"graph": graph(*nodes), "feeds": feeds}).status_code == 200


def test_registered_graph_keeps_its_opset(client: Client) -> None:
    sent = graph(node("input"), node("RANDOM_KEY", 0))
    response = client.post("/v1/graphs", json={"graph": sent})
    assert response.status_code == 201, response.text
    path = response.headers["location"]
    answer = client.post(f"{path}/forward", json={"feeds": [SEED]})
    assert answer.json()["stats"]["opset"] == 2
    assert client.get(path).json()["graph"] == graph(node("input"), node("random_key", 0))


def test_gradient_graph_of_opset_2_is_opset_2(client: Client) -> None:
    nodes = [
        node("parameter"), node("input"), node("random_normal", 1, shape=[3], dtype="float64"), node("mul", 0, 2),
        node("sum", 3),
    ]  # fmt: skip
    feeds = [
        {"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [2]}},
        {"node": 1, "tensor": UINT32_TENSOR},
    ]
    types = [{"node": 0, "dtype": "float64", "shape": []}, {"node": 1, "dtype": "uint32", "shape": [2]}]
    response = client.post("/v1/differentiate", json={"graph": graph(*nodes), "types": types})
    assert response.status_code == 200, response.text
    gradient_graph = response.json()["graph"]
    assert gradient_graph["opset"] == 2
    (gradient,) = response.json()["gradients"]
    body = {"graph": graph(*nodes), "feeds": feeds}
    direct = client.post("/v1/gradients", json=body).json()["gradients"][0]["tensor"]
    again = {"graph": gradient_graph, "feeds": feeds, "outputs": [gradient["gradient_node"]]}
    assert client.post("/v1/forward", json=again).json()["values"][0]["tensor"] == direct
