"""A graph says which opset it is of: one of opset 2 has its ops and dtypes, one of opset 1 is told what to say."""

from __future__ import annotations

import base64
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from tests.conftest import Client
from tests.service.support import node, problem

SEED = {"node": 0, "tensor": {"dtype": "int64", "shape": [], "data": [42]}}
WORDS = {"dtype": "uint32", "shape": [2], "data": [0, 2**32 - 1]}
KEY = {"node": 0, "tensor": WORDS}
SAYS = 'since opset 2: say "opset": 2 in the graph, which is of opset 1'


def graph(*nodes: dict[str, Any], opset: int | None = 2) -> dict[str, Any]:
    return {"nodes": list(nodes)} | ({} if opset is None else {"opset": opset})


def test_a_graph_of_opset_2_is_answered_and_known_as_such(client: Client) -> None:
    sent = graph(node("input"), node("random_key", 0))
    answer = client.post("/v1/forward", json={"graph": sent, "feeds": [SEED]})
    assert answer.status_code == 200, answer.text
    assert answer.json()["values"] == [{"node": 1, "tensor": {"dtype": "uint32", "shape": [2], "data": [0, 42]}}]
    stats = answer.json()["stats"]
    text = '{"nodes":[{"op":"input"},{"op":"random_key","operands":[0]}],"opset":2}'
    assert (stats["opset"], stats["graph_id"]) == (2, sha256(text.encode()).hexdigest())


def test_the_opset_is_part_of_what_a_graph_is(client: Client) -> None:
    nodes = [node("input"), node("exp", 0)]
    feeds = [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [0]}}]
    found = [
        client.post("/v1/forward", json={"graph": graph(*nodes, opset=opset), "feeds": feeds}).json()
        for opset in (None, 1, 2)
    ]
    assert found[0]["values"] == found[1]["values"] == found[2]["values"]
    assert [each["stats"]["opset"] for each in found] == [1, 1, 2]
    assert found[0]["stats"]["graph_id"] == found[1]["stats"]["graph_id"] != found[2]["stats"]["graph_id"]


def test_words_arrive_as_they_were_sent(client: Client) -> None:
    packed = base64.b64encode(np.array(WORDS["data"], "<u4").tobytes()).decode()
    for tensor in (WORDS, {"dtype": "uint32", "shape": [2], "data_b64": packed}):
        body = {"graph": graph(node("input"), node("identity", 0)), "feeds": [{"node": 0, "tensor": tensor}]}
        assert client.post("/v1/forward", json=body).json()["values"][0]["tensor"] == WORDS


@pytest.mark.parametrize("wrong", [-1, 2**32, 0.5])
def test_what_is_no_word_is_refused(client: Client, wrong: float) -> None:
    tensor = {"dtype": "uint32", "shape": [1], "data": [wrong]}
    body = {"graph": graph(node("input")), "feeds": [{"node": 0, "tensor": tensor}]}
    problem(client.post("/v1/forward", json=body), 422, "bad_tensor")


@pytest.mark.parametrize(
    ("nodes", "feeds", "code", "detail"),
    [
        (
            [node("input"), node("random_key", 0)], [SEED], "unknown_op",
            f"node 1 (random_key): random_key is an op {SAYS}",
        ),
        ([node("input")], [KEY], "dtype_mismatch", f"node 0 (input): the feed is uint32, a dtype {SAYS}"),
        (
            [node("constant", value=WORDS)], [], "dtype_mismatch",
            f"node 0 (constant): attribute value is uint32, a dtype {SAYS}",
        ),
        (
            [node("full", dtype="uint32")], [], "dtype_mismatch",
            f"node 0 (full): attribute dtype is uint32, a dtype {SAYS}",
        ),
        (
            [node("input", dtype="uint32")], [KEY], "dtype_mismatch",
            f"node 0 (input): attribute dtype is uint32, a dtype {SAYS}",
        ),
    ],
    ids=["op", "feed", "constant", "result", "leaf"],
)  # fmt: skip
@pytest.mark.parametrize("opset", [None, 1])
def test_a_graph_of_opset_1_is_told_what_to_say(
    client: Client, opset: int | None, nodes: list[Any], feeds: list[Any], code: str, detail: str
) -> None:
    answer = client.post("/v1/forward", json={"graph": graph(*nodes, opset=opset), "feeds": feeds})
    report = problem(answer, 422, code)
    assert (report["detail"], report["node"]) == (detail, len(nodes) - 1)
    assert client.post("/v1/forward", json={"graph": graph(*nodes), "feeds": feeds}).status_code == 200


def test_a_registered_graph_stays_of_its_opset(client: Client) -> None:
    sent = graph(node("input"), node("RANDOM_KEY", 0))
    told = client.post("/v1/graphs", json={"graph": sent})
    assert told.status_code == 201, told.text
    path = told.headers["location"]
    answer = client.post(f"{path}/forward", json={"feeds": [SEED]})
    assert answer.json()["stats"]["opset"] == 2
    assert client.get(path).json()["graph"] == graph(node("input"), node("random_key", 0))


def test_a_gradient_of_opset_2_is_a_graph_of_opset_2(client: Client) -> None:
    nodes = [
        node("parameter"), node("input"), node("random_normal", 1, shape=[3], dtype="float64"), node("mul", 0, 2),
        node("sum", 3),
    ]  # fmt: skip
    feeds = [{"node": 0, "tensor": {"dtype": "float64", "shape": [], "data": [2]}}, {"node": 1, "tensor": WORDS}]
    types = [{"node": 0, "dtype": "float64", "shape": []}, {"node": 1, "dtype": "uint32", "shape": [2]}]
    found = client.post("/v1/differentiate", json={"graph": graph(*nodes), "types": types})
    assert found.status_code == 200, found.text
    written = found.json()["graph"]
    assert written["opset"] == 2
    (gradient,) = found.json()["gradients"]
    asked = {"graph": graph(*nodes), "feeds": feeds}
    direct = client.post("/v1/gradients", json=asked).json()["gradients"][0]["tensor"]
    again = {"graph": written, "feeds": feeds, "outputs": [gradient["gradient_node"]]}
    assert client.post("/v1/forward", json=again).json()["values"][0]["tensor"] == direct
