"""Messages of refused requests: pinned, so that a change of wording is a decision.

Messages about the misuse of ops are pinned with the ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from service.core import spelling
from tests.conftest import Client
from tests.service.support import feed, node, problem, request, tensor

W = node("parameter")
FED = [feed(0, [2], [1, 2])]
FULL = node("full", shape=[2])


def fed(**changed: Any) -> dict[str, Any]:
    """Build a request that feeds one tensor with these fields."""
    return request(W, feeds=[{"node": 0, "tensor": changed}])


CASES: list[tuple[str, dict[str, Any], str]] = [
    (
        "gradients",
        {},
        "graph is required, but is missing or null",
    ),
    (
        "gradients",
        {"grph": {}},
        (
            "the request has no field “grph” (known: cotangent, diagnose, encoding, feeds, graph, memory_budget, of, "
            "outputs, precision, store, wrt); did you mean graph?"
        ),
    ),
    (
        "gradients",
        {"graph": None},
        "graph is required, but is missing or null",
    ),
    (
        "gradients",
        {"graph": {"nodes": []}},
        "the graph has no nodes",
    ),
    (
        "gradients",
        {"graph": {"nodes": [FULL], "opset": 3}},
        "the graph uses opset 3, but this server supports opset 1 or 2",
    ),
    (
        "gradients",
        {"graph": {"nodes": [FULL], "functions": [{}]}},
        'functions need opset 2: add "opset": 2 to the graph',
    ),
    (
        "forward",
        {"graph": {"nodes": [{"operands": []}]}},
        "node 0: graph.nodes[0].op is required, but is missing or null",
    ),
    (
        "forward",
        {"graph": {"nodes": [FULL, {"op": "sum", "operands": "0"}]}},
        (
            "node 1: graph.nodes[1].operands must be a list, but is a string; nodes are referenced by index, counted "
            "from 0"
        ),
    ),
    (
        "forward",
        {"graph": {"nodes": [FULL, {"op": "sum", "operands": [0.5]}]}},
        (
            "node 1: graph.nodes[1].operands[0] must be a whole number, but is a number with a decimal point; a number "
            "is a node of its own (constant, full), or an attribute (mul_scalar, add_scalar)"
        ),
    ),
    (
        "forward",
        {"graph": {"nodes": [FULL, {"op": "sum", "operands": [2**63]}]}},
        "node 1: graph.nodes[1].operands[0] must be a 64-bit integer, but is out of range",
    ),
    (
        "forward",
        {"graph": {"nodes": [FULL, {"op": "sum", "inputs": [0]}]}},
        "node 1: graph.nodes[1] has no field “inputs” (known: attrs, name, op, operands); did you mean operands?",
    ),
    (
        "forward",
        {"graph": {"nodes": [{"op": "full", "id": 0}]}},
        (
            "node 0: graph.nodes[0] has no field “id” (known: attrs, name, op, operands); "
            "a node's id is its index in nodes: leave it out"
        ),
    ),
    (
        "forward",
        {"graph": {"nodes": [FULL, {"op": "sum", "operands": None}]}},
        "node 1 (sum): takes 1 operand (x), but got 0",
    ),
    (
        "forward",
        {"graph": {"nodes": None}},
        "graph.nodes is required, but is missing or null; an empty list is []",
    ),
    (
        "gradients",
        request(FULL, wrt=None),
        "wrt is empty and the graph has no parameter nodes: name the nodes to differentiate with respect to",
    ),
    (
        "forward",
        {"graph": {"nodes": [FULL, {"op": "sum", "operands": [0], "name": "n" * 129}]}},
        "node 1: graph.nodes[1].name must be at most 128 characters long, but is 129 characters long",
    ),
    (
        "forward",
        {"graph": {"nodes": [FULL, {"op": "sum", "operands": [0], "attrs": []}]}},
        "node 1: graph.nodes[1].attrs must be an object, but is a list",
    ),
    (
        "forward",
        request(FULL, node("sum", 0, axes=0)),
        "node 1 (sum): attribute axes must be a list of 64-bit integers, but is 0; write [0]",
    ),
    (
        "forward",
        request(FULL, node("sum", 0, axes={})),
        "node 1 (sum): attribute axes must be a list of whole numbers, but is an object",
    ),
    (
        "forward",
        request(node("constant", value=[1, 2])),
        (
            "node 0 (constant): attribute value must be a tensor, but is a list; a tensor has the form "
            '{"dtype": "float64", "shape": [2], "data": […]}'
        ),
    ),
    (
        "forward",
        request(node("additon")),
        "node 0 (additon): there is no op called “additon”; did you mean add?",
    ),
    (
        "forward",
        request(node("frobnicate")),
        "node 0 (frobnicate): there is no op called “frobnicate”; GET /v1/ops lists all ops",
    ),
    (
        "forward",
        request(FULL, encoding="xml"),
        "encoding must be one of json, base64, but is “xml”",
    ),
    (
        "forward",
        request(FULL, outputs="0"),
        "outputs must be a list, but is a string; nodes are referenced by index, counted from 0",
    ),
    (
        "forward",
        {"graph": {"nodes": [FULL]}, "feeds": [{"node": 0}]},
        "node 0: feeds[0] has neither tensor nor tensor_id; one of them is expected",
    ),
    (
        "forward",
        request(W, feeds=FED * 2),
        "feeds name node 0 twice",
    ),
    (
        "forward",
        request(W, feeds=[{"node": 0, "tensor": {**FED[0]["tensor"], "strides": [1]}}]),
        "node 0: feeds[0].tensor has no field “strides” (known: data, data_b64, dtype, shape)",
    ),
    (
        "forward",
        fed(shape=[1], data=[1]),
        "node 0: feeds[0].tensor.dtype is required, but is missing or null",
    ),
    (
        "forward",
        request(W, feeds=[{"node": 0, "tensor": 1}]),
        "node 0: feeds[0].tensor must be an object, but is a whole number",
    ),
    (
        "forward",
        request(W, feeds=[feed(0, [1], [1], "f8")]),
        (
            "node 0: feeds[0].tensor has the unsupported dtype “f8”; one of bool, int8, uint8, int16, int32, uint32, "
            "int64, float16, float32, float64, complex64, complex128 is expected"
        ),
    ),
    (
        "forward",
        request(W, feeds=[feed(0, [-1], [1])]),
        "node 0: feeds[0].tensor has a negative extent in its shape",
    ),
    (
        "forward",
        request(W, feeds=[feed(0, [3], [1])]),
        "node 0: feeds[0].tensor must hold 3 elements to be float64[3], but holds 1",
    ),
    (
        "forward",
        request(W, feeds=[feed(0, [1, 1], [[1]])]),
        ("node 0: feeds[0].tensor has nested lists in data; data is one flat list of numbers, row by row (row-major)"),
    ),
    (
        "forward",
        request(W, feeds=[feed(0, [2, 2], [[1, 2], [3, 4]])]),
        ("node 0: feeds[0].tensor has nested lists in data; data is one flat list of numbers, row by row (row-major)"),
    ),
    (
        "forward",
        request(W, feeds=[feed(0, [1], [None])]),
        "node 0: feeds[0].tensor has null at data[0]; data is a flat list of numbers",
    ),
    (
        "forward",
        request(W, feeds=[feed(0, [1], [0.5], "int8")]),
        "node 0: feeds[0].tensor has a fraction in data, but int8[1] can hold only whole numbers",
    ),
    (
        "forward",
        request(W, feeds=[feed(0, [1], [300], "int8")]),
        "node 0: feeds[0].tensor has a number in data that int8 cannot represent",
    ),
    (
        "forward",
        request(W, feeds=[feed(0, [1], [1e300], "float32")]),
        "node 0: feeds[0].tensor has a number in data that is too large for float32",
    ),
    (
        "forward",
        fed(dtype="int8", shape=[1], data=[1], data_b64="AA=="),
        "node 0: feeds[0].tensor has both data and data_b64; one of them is expected",
    ),
    (
        "forward",
        fed(dtype="int8", shape=[1], data_b64="A"),
        "node 0: feeds[0].tensor has data_b64 that is not base64 (RFC 4648, padded)",
    ),
    (
        "forward",
        fed(dtype="int8", shape=[1], data_b64="AAAA"),
        "node 0: feeds[0].tensor must hold 1 byte to be int8[1], but holds 3",
    ),
    (
        "forward",
        fed(dtype="bool", shape=[1], data_b64="Ag=="),
        "node 0: feeds[0].tensor has a byte in data_b64 that is neither 0 nor 1",
    ),
    (
        "forward",
        fed(dtype="int8", shape=[1], data_b64=1),
        "node 0: feeds[0].tensor has data_b64 that is a whole number; a base64 string is expected",
    ),
    (
        "forward",
        fed(dtype="int8", shape=[1], data=1),
        "node 0: feeds[0].tensor has data that is a whole number; a flat list of numbers is expected",
    ),
    (
        "forward",
        fed(dtype="int8", shape=None, data=[1]),
        "node 0: feeds[0].tensor.shape is required, but is missing or null; an empty list is []",
    ),
    (
        "forward",
        fed(dtype="int8", shape=[10**9]),
        "node 0: feeds[0].tensor: this needs 1000000000 bytes, and the limit is 1000000 bytes",
    ),
    (
        "gradients",
        request(FULL, wrt=[0], cotangent=tensor([1], [])),
        "cotangent must hold 1 element to be float64[1], but holds 0",
    ),
    (
        "forward",
        request(node("full", shape=[10**4])),
        (
            "the response may need 260757 bytes, and the limit is 100000; ask for fewer outputs or gradients, or for "
            "base64"
        ),
    ),
]


@pytest.fixture(scope="module")
def small(make_client: Callable[..., Client]) -> Client:
    return make_client(max_bytes=10**6, max_response_bytes=10**5)


@pytest.mark.parametrize(("call", "body", "sentence"), CASES, ids=[sentence for _, _, sentence in CASES])
def test_message_of_a_refusal(small: Client, call: str, body: dict[str, Any], sentence: str) -> None:
    assert small.post(f"/v1/{call}", json=body).json()["detail"] == sentence


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the body is empty; a JSON object is expected"),
        (b"[]", "the body must be a JSON object, but is a list"),
        (b"\xef\xbb\xbf{}", "the body starts with a byte-order mark; send plain UTF-8"),
        (b"[" * 101, "the JSON is nested more than 100 levels deep"),
        (b'{"of": 1, "of": 2}', "the key “of” appears twice in one JSON object, at line 1 column 16"),
        (b'{"of": ]', "the body is not JSON: expected value at line 1 column 8"),
        (
            b'{"of": NaN}',
            (
                "the body is not JSON (expected value at line 1 column 8): "
                "JSON has no NaN and no Infinity; send tensors that hold them as data_b64"
            ),
        ),
    ],
)
def test_message_about_a_body(small: Client, content: bytes, sentence: str) -> None:
    assert small.post("/v1/forward", content=content).json()["detail"] == sentence


def test_all_errors_of_a_graph_are_reported_at_once(client: Client) -> None:
    """Up to ten errors are reported. Nodes that read a node of an unknown op are not reported for it."""
    mixed = request(
        node("parameter"),
        node("swish", 0),
        node("add", 1, 99),
        node("sum", 0, axs=0),
        node("get_output", 1, index=0),
        node("neg"),
    )
    report = problem(client.post("/v1/gradients", json=mixed), 422, "unknown_op")
    assert [(error["node"], error["code"]) for error in report["errors"]] == [
        (1, "unknown_op"),
        (2, "bad_reference"),
        (3, "bad_attribute"),
        (5, "operand_count"),
    ]

    unknown = request(node("parameter"), node("swish", 0), node("bmm", 0, 0), node("square", 0))
    report = problem(client.post("/v1/gradients", json=unknown), 422, "unknown_op")
    assert report["detail"] == "node 1 (swish): there is no op called “swish”; did you mean silu?"
    assert [(error["node"], error["code"]) for error in report["errors"]] == [(1, "unknown_op"), (2, "unknown_op")]

    wrong = request(
        node("parameter"), node("square", 9), node("mean", 0, axis=0), node("square", 0), feeds=[feed(0, [2], [1, 2])]
    )
    report = problem(client.post("/v1/gradients", json=wrong), 422, "bad_reference")
    assert [(error["node"], error["pointer"]) for error in report["errors"]] == [
        (1, "/graph/nodes/1/operands/0"),
        (2, "/graph/nodes/2/attrs/axis"),
    ]
    many = request(node("parameter"), *[node("square", 99)] * 40)
    assert len(problem(client.post("/v1/gradients", json=many), 422, "bad_reference")["errors"]) == 10


FAMILIAR = [
    *(("nodes", name, "operands") for name in ("inputs", "input", "args", "parents")),
    *(("nodes", name, "attrs") for name in ("attributes", "attr", "params")),
    *(("nodes", name, "op") for name in ("type", "kind")),
    ("nodes", "label", "name"),
    *(("request", name, "feeds") for name in ("inputs", "values", "feed", "Inputs")),
    *(("tensor", name, "data") for name in ("values", "value")),
    ("tensor", "type", "dtype"),
    *(("tensor", name, "shape") for name in ("dims", "size")),
    *(("feeds", name, "node") for name in ("id", "index")),
    ("feeds", "value", "tensor"),
]


@pytest.mark.parametrize(("message", "name", "meant"), FAMILIAR)
def test_field_name_of_another_system_gets_a_suggestion(small: Client, message: str, name: str, meant: str) -> None:
    body = request({**W}, feeds=[feed(0, [1], [1])])
    places = {
        "request": body,
        "nodes": body["graph"]["nodes"][0],
        "feeds": body["feeds"][0],
        "tensor": body["feeds"][0]["tensor"],
    }
    places[message][name] = places[message].pop(meant, "")
    assert small.post("/v1/forward", json=body).json()["detail"].endswith(f"; did you mean {meant}?")


def test_plan_suggests_types_instead_of_feeds(small: Client) -> None:
    errors = small.post("/v1/plan", json=request(W) | {"values": []}).json()["errors"]
    assert [report["detail"].rpartition("; ")[2] for report in errors][1:] == ["did you mean types?"]


@pytest.mark.parametrize("name", ["operand" + "s" * 10**5, "graph" * 10**5])
def test_only_the_beginning_of_a_long_name_is_compared(
    small: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    original = spelling.nearest

    def nearest(word: str, candidates: Any) -> str | None:
        compared.append(len(word))
        return original(word, candidates)

    monkeypatch.setattr(spelling, "nearest", nearest)
    assert small.post("/v1/forward", json={name: 1}).status_code == 422
    assert compared == [64]
