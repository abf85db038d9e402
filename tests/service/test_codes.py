"""Every error code of the contract: produced here, or listed with the test that produces it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from service.core.errors import KINDS
from tests.conftest import Client
from tests.service.support import SQUARES, feed, node, problem, request, tensor

FROZEN = tomllib.loads((Path(__file__).parents[1] / "spec" / "wire1.toml").read_text(encoding="utf-8"))
STATUS = {code: int(status) for status, codes in FROZEN["errors"].items() for code in codes}

W = node("parameter")
FED = [feed(0, [2], [1, 2])]
FULL = node("full", shape=[2])

#: code → request bodies, for both gradients and forward
REQUESTS: dict[str, list[dict[str, Any]]] = {
    "unknown_op": [
        request(node("additon")),
        request(node("")),
        request(node("x" * 10_000)),
        request(FULL, node("ädd", 0, 0)),
    ],
    "bad_reference": [
        request(FULL, node("square", 1)),
        request(FULL, node("square", 2)),
        request(FULL, node("square", -1)),
        request(FULL, outputs=[1]),
        request(FULL, outputs=[-1]),
        request(FULL, node("square", 2**63 - 1)),
    ],
    "operand_count": [
        request(FULL, node("add", 0)),
        request(FULL, node("add", 0, 0, 0)),
        request(FULL, node("square")),
        request(FULL, node("full", 0)),
    ],
    "bad_attribute": [
        request(FULL, node("sum", 0, axis=0)),
        request(FULL, node("sum", 0, axes=0)),
        request(FULL, node("sum", 0, axes=[0, 0])),
        request(FULL, node("sum", 0, axes=[1])),
        request(FULL, node("sum", 0, axes=["0"])),
        request(FULL, node("sum", 0, axes=[0.0])),
        request(FULL, node("sum", 0, keepdims=1)),
        request(FULL, node("sum", 0, keepdims="true")),
        request(FULL, node("add_scalar", 0)),
        request(FULL, node("add_scalar", 0, scalar="1")),
        request(FULL, node("add_scalar", 0, scalar=True)),
        request(FULL, node("add_scalar", 0, scalar={})),
        request(FULL, node("cast", 0, dtype="f4")),
        request(FULL, node("cast", 0, dtype=4)),
        request(FULL, node("square", 0, axes=[0])),
        request(FULL, node("square", 0, nonsense=[0])),
        request(node("constant")),
        request(node("constant", value=3)),
        request(node("constant", value=[1, 2])),
        request(node("full", shape=[-1])),
        request(node("full", shape=[2**70])),
        request(node("input", dtype="float"), feeds=FED),
    ],
    "shape_mismatch": [
        request(FULL, node("full", shape=[3]), node("add", 0, 1)),
        request(node("input", shape=[3]), feeds=FED),
        request(node("input", shape=[-1, -1]), feeds=FED),
        request(FULL, node("reshape", 0, shape=[3])),
    ],
    "dtype_mismatch": [
        request(node("input", dtype="float32"), feeds=FED),
        request(FULL, node("gather", 0, 0, axis=0)),
    ],
    "index_out_of_range": [
        request(FULL, node("constant", value=tensor([1], [2], "int64")), node("gather", 0, 1), node("sum", 2)),
        request(FULL, node("constant", value=tensor([1], [-1], "int64")), node("gather", 0, 1), node("sum", 2)),
    ],
    "missing_feed": [request(W), request(W, node("parameter"), node("add", 0, 1), feeds=FED)],
    "unexpected_feed": [
        request(FULL, feeds=FED),
        request(FULL, feeds=[feed(1, [2], [1, 2])]),
        request(FULL, feeds=[feed(-1, [2], [1, 2])]),
        request(FULL, feeds=[feed(10**15, [2], [1, 2])]),
    ],
    "bad_tensor": [request(W, feeds=[feed(0, [3], [1, 2])])],
    "invalid_field": [
        {},
        {"graph": None},
        {"graph": []},
        {"graph": {}},
        {"graph": {"nodes": []}},
        {"graph": {"nodes": {}}},
        {"graph": {"nodes": [None]}},
        {"graph": {"nodes": [[]]}},
        {"graph": {"nodes": [{}]}},
        {"graph": {"nodes": [{"op": 1}]}},
        {"graph": {"nodes": [{"op": None}]}},
        {"graph": {"nodes": [{"op": "full", "operands": 0}]}},
        {"graph": {"nodes": [{"op": "full", "operands": [0.5]}]}},
        {"graph": {"nodes": [{"op": "full", "operands": [True]}]}},
        {"graph": {"nodes": [{"op": "full", "operands": ["0"]}]}},
        {"graph": {"nodes": [{"op": "full", "operands": [2**63]}]}},
        {"graph": {"nodes": [{"op": "full", "attrs": []}]}},
        {"graph": {"nodes": [{"op": "full", "name": 1}]}},
        {"graph": {"nodes": [{"op": "full", "name": "n" * 129}]}},
        {"graph": {"nodes": [{"op": "full", "id": 0}]}},
        {"graph": {"nodes": [FULL], "opset": 3}},
        {"graph": {"nodes": [FULL], "opset": "1"}},
        {"graph": {"nodes": [FULL], "functions": [{}]}},
        {"graph": {"nodes": [FULL], "symbols": []}},
        {"graph": {"nodes": [FULL]}, "feeds": {}},
        {"graph": {"nodes": [FULL]}, "feeds": [1]},
        {"graph": {"nodes": [FULL]}, "feeds": [{}]},
        {"graph": {"nodes": [FULL]}, "feeds": [{"node": 0}]},
        {"graph": {"nodes": [FULL]}, "feeds": [{"node": "0", "tensor": tensor([], [1])}]},
        {"graph": {"nodes": [FULL]}, "feeds": [{"node": 0, "tensor": tensor([], [1]), "name": "x"}]},
        {"graph": {"nodes": [FULL]}, "feeds": [{"node": 0, "tensor": {**tensor([], [1]), "strides": []}}]},
        {"graph": {"nodes": [FULL]}, "outputs": 0},
        {"graph": {"nodes": [FULL]}, "outputs": ["0"]},
        {"graph": {"nodes": [FULL]}, "encoding": "binary"},
        {"graph": {"nodes": [FULL]}, "store": {}},
        {"graph": {"nodes": [FULL]}, "gradients": []},
        request(W, feeds=[*FED, *FED]),
    ],
    "over_budget": [
        request(node("full", shape=[10**6, 10**6])),
        request(node("full", shape=[0, 2**62])),
        request(node("full", shape=[1] * 33)),
        request(FULL, node("broadcast_to", 0, shape=[10**12, 2])),
    ],
}  # fmt: skip
#: code → request bodies, for gradients only
GRADIENT_REQUESTS: dict[str, list[dict[str, Any]]] = {
    "non_scalar_output": [request(W, node("square", 0), feeds=FED)],
    "not_differentiable": [
        request(W, feeds=[feed(0, [], [1], "int32")]),
        request(FULL, node("cast", 0, dtype="int64"), node("sum", 1), wrt=[0]),
        request(node("full", dtype="bool"), node("identity", 0), wrt=[0]),
    ],
    "bad_reference": [SQUARES | {"of": 3}, SQUARES | {"of": -1}, SQUARES | {"wrt": [3]}, SQUARES | {"wrt": [-1]}],
    "invalid_field": [
        SQUARES | {"of": "2"},
        SQUARES | {"of": 2.5},
        SQUARES | {"wrt": [0, 0]},
        SQUARES | {"wrt": 0},
        SQUARES | {"wrt": [True]},
        SQUARES | {"cotangent": tensor([], [1]) | {"name": "seed"}},
        SQUARES | {"cotangent": 1} | {"graph": None},
        request(FULL, node("sum", 0)),
    ],
    "bad_tensor": [SQUARES | {"cotangent": bad} for bad in (tensor([1], [1, 2]), 1)],
    "shape_mismatch": [SQUARES | {"cotangent": tensor([1], [1])}],
    "dtype_mismatch": [SQUARES | {"cotangent": tensor([], [1], "float32")}],
}  # fmt: skip

PRODUCED_ELSEWHERE = {
    # test_json
    "invalid_json", "duplicate_key", "too_deep",
    # test_http
    "not_found", "method_not_allowed", "not_acceptable", "unsupported_media_type", "body_too_large", "forbidden",
    # test_limits
    "too_many_nodes", "queue_full", "shutting_down", "deadline_exceeded", "internal_error",
    # web/test_origins
    "misdirected",
    # test_readiness
    "not_ready",
    # keys/test_every_call
    "unauthenticated", "rate_limited",
    # web/test_tensors
    "conflict", "precondition_failed", "store_full",
    # web/test_models
    "in_use",
    # web/test_two_servers
    "unconfirmed",
    # compute/test_deaths
    "worker_died",
    # test_sockets
    "bad_request_framing", "request_timeout", "headers_too_large",
}  # fmt: skip


def cases(table: dict[str, list[dict[str, Any]]]) -> list[Any]:
    return [
        pytest.param(code, body, id=f"{code}-{i}") for code, bodies in table.items() for i, body in enumerate(bodies)
    ]


@pytest.mark.parametrize(("code", "body"), cases(REQUESTS))
def test_forward(client: Client, code: str, body: dict[str, Any]) -> None:
    check(client.post("/v1/forward", json=body), code)


@pytest.mark.parametrize(("code", "body"), cases(REQUESTS))
def test_gradients(client: Client, code: str, body: dict[str, Any]) -> None:
    has_graph = isinstance(body.get("graph"), dict) and body["graph"].get("nodes")
    wrt = {"wrt": [0]} if has_graph and code != "invalid_field" else {}
    wrt |= {"of": 0} if body.get("outputs") == [0] else {}
    check(client.post("/v1/gradients", json=body | wrt), code)


@pytest.mark.parametrize(("code", "body"), cases(GRADIENT_REQUESTS))
def test_gradients_only(client: Client, code: str, body: dict[str, Any]) -> None:
    check(client.post("/v1/gradients", json=body), code)


def check(response: Any, code: str) -> None:
    report = problem(response, STATUS[code], code)
    assert report["type"] == f"/docs/errors/{code}"
    assert report["title"] == KINDS[code].title
    assert len(report["detail"]) < 400
    if report.get("pointer", "").startswith("/graph/nodes/"):
        assert report["node"] == int(report["pointer"].split("/")[3])
        assert f"node {report['node']}" in report["detail"]


def test_every_code_is_accounted_for() -> None:
    produced = set(REQUESTS) | set(GRADIENT_REQUESTS) | PRODUCED_ELSEWHERE
    assert produced == set(STATUS) | {"internal_error"}


@pytest.mark.parametrize("code", sorted(PRODUCED_ELSEWHERE))
def test_other_codes_are_produced_by_a_test(code: str) -> None:
    folder = Path(__file__).parent
    tests = [path.read_text(encoding="utf-8") for path in folder.rglob("test_*.py") if path.name != "test_codes.py"]
    assert any(f'"{code}")' in text or f'"{code}",' in text for text in tests)


def test_all_errors_are_reported(client: Client) -> None:
    body = {"graph": {"nodes": 1}, "of": "a", "encoding": "xml"}
    report = problem(client.post("/v1/gradients", json=body), 422, "invalid_field")
    assert {error["pointer"] for error in report["errors"]} == {"/graph/nodes", "/of", "/encoding"}
    assert report["detail"] == report["errors"][0]["detail"]
    assert all("errors" not in error for error in report["errors"])


WIDE = {f"field{i}": 0 for i in range(1000)}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (WIDE, ""),
        ({"graph": WIDE}, "/graph"),
        ({"graph": {"nodes": [FULL, {**FULL, **WIDE}]}}, "/graph/nodes/1"),
        (request(W, feeds=[{**FED[0], **WIDE}]), "/feeds/0"),
        (request(W, feeds=[{"node": 0, "tensor": {**FED[0]["tensor"], **WIDE}}]), "/feeds/0/tensor"),
        (request(node("constant", value=WIDE)), "/graph/nodes/0/attrs/value"),
    ],
)
def test_only_the_first_of_many_unknown_fields_is_reported(
    client: Client, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], pointer: str
) -> None:
    """Reporting each of a million unknown fields would take a minute: the validator is not called."""
    monkeypatch.setattr("service.api.tensors._refusal", None)
    report = problem(client.post("/v1/forward", json=body), 422, "invalid_field")
    assert report["pointer"] == f"{pointer}/field0"
    assert "errors" not in report


@pytest.mark.parametrize("name", ["n" * 500, "\x1b[31m" + "n" * 500])
def test_names_in_errors_are_short_and_printable(client: Client, name: str) -> None:
    for body in (
        request(node(name)),
        request(FULL, node("square", 0, **{name: 1})),
        {"graph": {"nodes": [{**FULL, name: 1}]}},
        {"graph": {"nodes": [FULL]}, name: 1},
        request(FULL, node("cast", 0, dtype=name)),
        request(node("input"), feeds=[feed(0, [], [1], name)]),
    ):
        response = client.post("/v1/forward", json=body)
        assert response.status_code == 422
        assert "n" * 64 not in response.text
        assert "\\u001b" not in response.text


def test_node_beyond_64_bits_is_reported_with_other_errors(client: Client) -> None:
    body = request(W, feeds=[{"node": 10**40, "tensor": 1}])
    report = problem(client.post("/v1/gradients", json=body), 422, "invalid_field")
    assert {error["code"] for error in report["errors"]} == {"invalid_field", "bad_tensor"}
    assert not any("node" in error for error in report["errors"])
