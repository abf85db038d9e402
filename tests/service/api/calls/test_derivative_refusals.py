"""Refusals of the derivative calls: their codes and messages."""

from __future__ import annotations

from typing import Any

import pytest

from service.api.calls import calls
from tests.conftest import Client
from tests.service.api.calls.test_derivative_calls import ASKED, TYPED
from tests.service.support import feed, node, problem, request, tensor

Json = dict[str, Any]
ONE = feed(0, [2], [1, 1])
INTS = {"graph": {"nodes": [node("parameter"), node("argmax", 0, axis=0)]}, "feeds": [ONE]}
SEVERAL = [node("parameter"), node("chunk", 0, chunks=2), node("get_output", 1, index=0)]
TWO = [node("parameter"), node("parameter"), node("mul", 0, 1), node("sum", 2)]

#: call, changes to a valid request, code, message
CASES: list[tuple[str, Json, str, str]] = [
    (
        "vjp",
        {"cotangents": []},
        "invalid_field",
        "cotangents has no entry for node 1: each node in outputs needs one",
    ),
    (
        "vjp",
        {"outputs": [1, 2]},
        "invalid_field",
        "cotangents has no entry for node 2: each node in outputs needs one",
    ),
    ("vjp", {"outputs": [1, 1]}, "invalid_field", "outputs names node 1 twice"),
    ("vjp", {"outputs": [2]}, "bad_reference", "cotangents names node 1, which is not in outputs"),
    ("vjp", {"outputs": [3]}, "bad_reference", "outputs names node 3, but the nodes are 0 to 2"),
    ("vjp", {"outputs": [-1]}, "bad_reference", "outputs names node -1, but the nodes are 0 to 2"),
    ("vjp", {"wrt": [0, 0]}, "invalid_field", "wrt names node 0 twice"),
    ("vjp", {"cotangents": [feed(1, [2], [1, 2])] * 2}, "invalid_field", "cotangents name node 1 twice"),
    (
        "vjp",
        {"cotangents": [feed(1, [3], [1, 2, 3])]},
        "shape_mismatch",
        "node 1 (square): its cotangent must have shape [2], but has [3]",
    ),
    (
        "vjp",
        {"cotangents": [feed(1, [2], [1, 2], "float32")]},
        "dtype_mismatch",
        "node 1 (square): its cotangent must be float64, but is float32",
    ),
    (
        "vjp",
        {"batched": True},
        "shape_mismatch",
        "node 1 (square): its batched cotangent must have shape [2, 2], but has [2]",
    ),
    (
        "vjp",
        {"batched": True, "outputs": [2], "cotangents": [feed(2, [], [1])]},
        "shape_mismatch",
        "node 2 (sum): its cotangent must have a leading axis K, since batched is true, but is 0-d",
    ),
    ("vjp", {"batched": "yes"}, "invalid_field", "batched must be true or false, but is a string"),
    (
        "vjp",
        {"cotangents": [feed(1, [2], [1])]},
        "bad_tensor",
        "node 1: cotangents[0].tensor must hold 2 elements to be float64[2], but holds 1",
    ),
    (
        "vjp",
        {"cotangent": tensor([2], [1, 1])},
        "invalid_field",
        (
            "the request has no field “cotangent” (known: batched, cotangents, diagnose, encoding, feeds, "
            "graph, memory_budget, outputs, precision, store, wrt); did you mean cotangents?"
        ),
    ),
    ("jvp", {"tangents": []}, "invalid_field", "tangents are missing: give one for at least one leaf"),
    (
        "jvp",
        {"tangents": [feed(1, [2], [1, 2])]},
        "invalid_field",
        "node 1 (square): tangents name this node, but only leaves take one",
    ),
    ("jvp", {"tangents": [feed(7, [2], [1, 2])]}, "bad_reference", "tangents names node 7, but the nodes are 0 to 2"),
    (
        "jvp",
        {"tangents": [feed(0, [], [1])]},
        "shape_mismatch",
        "node 0 (parameter): its tangent must have shape [2], but has []",
    ),
    (
        "jvp",
        {"tangents": [feed(0, [2], [1, 2], "int64")]},
        "dtype_mismatch",
        "node 0 (parameter): its tangent must be float64, but is int64",
    ),
    (
        "jvp",
        INTS | {"outputs": [1]},
        "not_differentiable",
        "node 1 (argmax): outputs names this node, whose dtype int64 has no derivatives",
    ),
    ("jacobian", {"outputs": [1, 1]}, "invalid_field", "outputs names node 1 twice"),
    (
        "jacobian",
        INTS | {"outputs": [1]},
        "not_differentiable",
        "node 1 (argmax): outputs names this node, whose dtype int64 has no derivatives",
    ),
    (
        "jacobian",
        request(*SEVERAL, feeds=[ONE], outputs=[1]),
        "bad_reference",
        "node 1 (chunk): outputs names this node, which has several outputs: name one of its get_output nodes",
    ),
    (
        "jacobian",
        request(node("input"), feeds=[ONE], outputs=[0]),
        "invalid_field",
        "wrt is empty and the graph has no parameter nodes: name the nodes to differentiate with respect to",
    ),
    ("hvp", {"vectors": []}, "invalid_field", "vectors has no entry for node 0: each node in wrt needs one"),
    ("hvp", {"vectors": [ONE, feed(1, [2], [1, 1])]}, "bad_reference", "vectors names node 1, which is not in wrt"),
    (
        "hvp",
        {"vectors": [feed(0, [1], [1])]},
        "shape_mismatch",
        "node 0 (parameter): its vector must have shape [2], but has [1]",
    ),
    (
        "hvp",
        {"of": 1},
        "non_scalar_output",
        ("node 1 (square): has shape [2]: reduce it to one element (sum, mean), or ask for its jacobian"),
    ),
    (
        "hessian",
        {"of": 1},
        "non_scalar_output",
        ("node 1 (square): has shape [2]: reduce it to one element (sum, mean), or ask for its jacobian"),
    ),
    ("hessian", {"wrt": [0, 0]}, "invalid_field", "wrt names node 0 twice"),
    (
        "hessian",
        INTS,
        "not_differentiable",
        "node 1 (argmax): of names this node, whose dtype int64 has no derivatives",
    ),
    ("batch", {"mapped": []}, "invalid_field", "mapped is empty: name the leaves whose feeds have a leading axis"),
    ("batch", {"mapped": [0, 0]}, "invalid_field", "mapped names node 0 twice"),
    (
        "batch",
        {"mapped": [1]},
        "invalid_field",
        "node 1 (square): mapped names this node, but only leaves can be mapped",
    ),
    ("batch", {"mapped": [9]}, "bad_reference", "mapped names node 9, but the nodes are 0 to 2"),
    ("batch", {"feeds": []}, "missing_feed", "node 0 (parameter): is mapped, but has no feed"),
    (
        "batch",
        {"feeds": [feed(0, [], [1])]},
        "shape_mismatch",
        "node 0 (parameter): is mapped: its feed must have a leading axis, but is 0-d",
    ),
    (
        "batch",
        request(*TWO, feeds=[feed(0, [2], [1, 2]), feed(1, [3], [1, 2, 3])], mapped=[0, 1]),
        "shape_mismatch",
        (
            "node 1 (parameter): is mapped: its feed must have the leading extent 2, like the other mapped feeds, but "
            "has 3"
        ),
    ),
    (
        "batch",
        {"of": 1},
        "non_scalar_output",
        (
            'node 1 (square): has shape [2], but batch computes Jacobians only since opset 2: add "opset": 2 to the '
            "graph, which uses opset 1, or reduce this node to one element (sum, mean)"
        ),
    ),
    ("plan", {"types": TYPED["types"] * 2}, "invalid_field", "types name node 0 twice"),
    (
        "plan",
        {"types": [{"node": 0, "dtype": "float64"}]},
        "invalid_field",
        "types[0].shape is required, but is missing or null; an empty list is []",
    ),
    (
        "plan",
        {"types": [{"node": 0, "dtype": "f8", "shape": [2]}]},
        "bad_tensor",
        (
            "node 0: types[0] has the unsupported dtype “f8”; one of bool, int8, uint8, int16, int32, uint32, int64, "
            "float16, float32, float64, complex64, complex128 is expected"
        ),
    ),
    (
        "plan",
        {"types": [{"node": 0, "dtype": "float64", "shape": [-1]}]},
        "bad_tensor",
        "node 0: types[0] has a negative extent in its shape",
    ),
    (
        "plan",
        {"types": [{"node": 0, "dtype": "float64", "shape": [1] * 33}]},
        "over_budget",
        "node 0: types[0]: a tensor may have at most 32 axes, but this one has 33",
    ),
    (
        "plan",
        {"types": []},
        "missing_feed",
        "node 0 (parameter): the result needs a feed for this node, but there is none",
    ),
    (
        "plan",
        {"feeds": [ONE]},
        "invalid_field",
        (
            "the request has no field “feeds” (known: block, call, encoding, graph, layout, mapped, memory_budget, of, "
            "outputs, precision, reduce, types, wrt); did you mean types?"
        ),
    ),
    (
        "plan",
        {"call": "plan"},
        "invalid_field",
        "call must be one of gradients, forward, vjp, jvp, jacobian, hvp, hessian, batch, but is “plan”",
    ),
    ("plan", {"call": "batch"}, "invalid_field", "mapped is empty: name the leaves whose feeds have a leading axis"),
    (
        "plan",
        {"call": "jvp", "wrt": [1]},
        "invalid_field",
        "node 1 (square): tangents name this node, but only leaves take one",
    ),
    ("check", {"directions": 0}, "invalid_field", "directions must be 1 to 64, but is 0"),
    ("check", {"directions": 65}, "invalid_field", "directions must be 1 to 64, but is 65"),
    (
        "check",
        {"directions": 1.5},
        "invalid_field",
        "directions must be a whole number, but is a number with a decimal point",
    ),
    ("check", {"tolerance": 0}, "invalid_field", "tolerance must be 1e-12 to 1, but is 0"),
    ("check", {"tolerance": "small"}, "invalid_field", "tolerance must be a number, but is a string"),
    (
        "check",
        {"of": 1},
        "non_scalar_output",
        ("node 1 (square): has shape [2]: reduce it to one element (sum, mean), or ask for its jacobian"),
    ),
    (
        "check",
        {"outputs": [1]},
        "invalid_field",
        (
            "the request has no field “outputs” (known: directions, encoding, feeds, graph, memory_budget, of, "
            "precision, tolerance, wrt)"
        ),
    ),
    (
        "differentiate",
        {"types": []},
        "missing_feed",
        "node 0 (parameter): the result needs a feed for this node, but there is none",
    ),
    ("differentiate", {"wrt": [5]}, "bad_reference", "wrt names node 5, but the nodes are 0 to 2"),
    (
        "differentiate",
        {"of": 1},
        "non_scalar_output",
        ("node 1 (square): has shape [2]: reduce it to one element (sum, mean), or ask for its jacobian"),
    ),
]


@pytest.mark.parametrize(("call", "changed", "code", "sentence"), CASES)
def test_refusal_has_code_and_message(client: Client, call: str, changed: Json, code: str, sentence: str) -> None:
    report = problem(
        client.post(f"/v1/{call}", json=ASKED[call] | changed), 413 if code == "over_budget" else 422, code
    )
    assert report["detail"] == sentence
    if sentence.startswith("node "):
        assert report["node"] == int(sentence.split()[1].rstrip(":"))
        assert "pointer" in report


@pytest.mark.parametrize("call", sorted(name for name in ASKED if "outputs" in calls()[name].request.__annotations__))
@pytest.mark.parametrize("accept", ["application/json", "application/vnd.safetensors"])
def test_duplicate_output_is_refused(client: Client, call: str, accept: str) -> None:
    """In safetensors, two tensors with one header entry would make the file invalid."""
    response = client.post(f"/v1/{call}", json=ASKED[call] | {"outputs": [1, 1]}, headers={"Accept": accept})
    assert problem(response, 422, "invalid_field")["detail"] == "outputs names node 1 twice"


@pytest.mark.parametrize("call", sorted(ASKED))
def test_invalid_graph_is_refused_by_every_call(client: Client, call: str) -> None:
    def refused(code: str, status: int = 422, **changed: Any) -> None:
        problem(client.post(f"/v1/{call}", json=ASKED[call] | changed), status, code)

    refused("unknown_op", graph={"nodes": [node("parameter"), node("squared", 0), node("sum", 1)]})
    refused("bad_reference", graph={"nodes": [node("parameter"), node("square", 7), node("sum", 1)]})
    refused("operand_count", graph={"nodes": [node("parameter"), node("square", 0, 0), node("sum", 1)]})
    refused("bad_attribute", graph={"nodes": [node("parameter"), node("square", 0, axis=1), node("sum", 1)]})
    refused("shape_mismatch", graph={"nodes": [node("parameter", shape=[5]), node("square", 0), node("sum", 1)]})
    refused("dtype_mismatch", graph={"nodes": [node("parameter", dtype="int8"), node("square", 0), node("sum", 1)]})
    refused("over_budget", 413, graph={"nodes": [node("parameter"), node("reshape", 0, shape=[2, *[1] * 40])]})
    refused("invalid_field", graph={"nodes": []})
    refused("invalid_field", graph=None)
    refused("invalid_field", stores=[])
    given = {"feeds": [feed(1, [], [1])]} if "feeds" in ASKED[call] else {"types": [TYPED["types"][0] | {"node": 1}]}
    refused("missing_feed" if call == "batch" else "unexpected_feed", **given)


def test_oversized_answer_is_refused(make_client: Any) -> None:
    small = make_client(max_response_bytes=5000, max_bytes=1 << 20)
    many = [feed(0, [50], [0.5] * 50)]
    for call in ("jacobian", "hessian"):
        problem(small.post(f"/v1/{call}", json=ASKED[call] | {"feeds": many}), 413, "over_budget")
    more = [feed(0, [1000], [0.5] * 1000)]
    report = problem(small.post("/v1/jacobian", json=ASKED["jacobian"] | {"feeds": more}), 413, "over_budget")
    assert report["detail"] == "this needs 8000000 bytes, and the limit is 1048576 bytes"
