"""Functions on the wire: their results, errors with their locations, and limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Client
from tests.service.api.safetensors_support import array
from tests.service.support import Json, feed, node, problem, tensor
from tests.service.with_functions import (
    ADDS,
    CALLED,
    DECAY,
    DOUBLE,
    IN,
    NARROW,
    P,
    V,
    X,
    asked,
    function,
    result,
    values,
)


def test_graph_runs_its_function(client: Client) -> None:
    answer = client.post("/v1/gradients", json=DECAY)
    assert answer.status_code == 200, answer.text
    assert answer.json()["values"] == [{"node": 4, "tensor": tensor([], [15.0])}]
    assert answer.json()["gradients"] == [{"node": 0, "tensor": tensor([], [-26.0])}]


@pytest.mark.parametrize(
    ("call", "more"),
    [
        ("vjp", {"cotangents": [feed(4, [], [1.0])]}),
        ("jvp", {"tangents": [feed(0, [], [1.0])]}),
        ("jacobian", {}),
        ("hvp", {"vectors": [feed(0, [], [1.0])]}),
        ("hessian", {}),
        ("batch", {"mapped": [0], "feeds": [feed(0, [2], [1.0, 0.5]), DECAY["feeds"][1]]}),
        ("check", {}),
    ],
)
def test_every_call_accepts_functions(client: Client, call: str, more: Json) -> None:
    answer = client.post(f"/v1/{call}", json=DECAY | more)
    assert answer.status_code == 200, answer.text
    content = answer.json()
    if call in ("vjp", "hvp", "hessian", "batch"):
        assert array(content["gradients"][0]["tensor"]).reshape(-1)[0] == -26
    elif call != "check":
        assert array(content["tangents" if call == "jvp" else "jacobian"][0]["tensor"]) == -26
    else:
        assert content["passed"]


def test_function_accepts_several_shapes(client: Client) -> None:
    nodes = [IN, node("input"), node("call", 0, body=0), node("call", 1, body=0), result(2), result(3)]
    request = asked([DOUBLE], *nodes, feeds=[X, feed(1, [2], [3.0, 4.0])], outputs=[4, 5])
    assert [x.tolist() for x in values(client, request)] == [2.0, [6.0, 8.0]]


def test_outputs_may_repeat_and_be_inputs(client: Client) -> None:
    nodes = [IN, node("call", 0, body=0), *(result(1, k) for k in range(3))]
    request = asked([function([0, 1, 1], *DOUBLE["nodes"])], *nodes, outputs=[2, 3, 4])
    assert [float(x) for x in values(client, request)] == [1, 2, 2]


# ---------------------------------------------------------------- errors at a call site


LOOPED = (IN, node("scan", 0, body=0, carries=1, length=2), result(1))
CLASH = "shapes [3] and [2] do not broadcast: their extents at axis -1 differ and none of them is 1"
LOGICAL = function([1], IN, node("greater", 0, 0))
#: request, and the error: code, node, function, node of that function, pointer in the graph, detail
CALL_SITE_ERRORS: dict[str, tuple[Json, str, int, int | None, int | None, str, str]] = {
    "absent": (
        asked([DOUBLE], IN, node("call", 0, body=1), result(1)), "bad_attribute", 1, None, None, "/nodes/1/attrs/body",
        "node 1 (call): attribute body must be the index of an earlier function, 0 to 0, but is 1",
    ),
    "no function at all": (
        asked([], *CALLED), "bad_attribute", 1, None, None, "/nodes/1/attrs/body",
        "node 1 (call): attribute body must be the index of an earlier function (there is none), but is 0",
    ),
    "negative": (
        asked([DOUBLE], IN, node("call", 0, body=-1), result(1)), "bad_attribute", 1, None, None, "/nodes/1/attrs/body",
        "node 1 (call): attribute body must be the index of a function, but is -1",
    ),
    "negative count": (
        asked([DOUBLE], IN, node("scan", 0, body=0, carries=-1, length=1), result(1)),
        "bad_attribute", 1, None, None, "/nodes/1/attrs/carries",
        "node 1 (scan): attribute carries must be a whole number of at least 0, but is -1",
    ),
    "no bound": (
        asked([DOUBLE, LOGICAL], IN, node("while", 0, body=0, condition=1, carries=1), result(1)),
        "bad_attribute", 1, None, None, "/nodes/1/attrs/max_steps",
        "node 1 (while): attribute max_steps is required",
    ),
    "parameters": (
        asked([DOUBLE], IN, node("call", 0, 0, body=0), result(1)), "bad_attribute", 1, 0, None, "/functions/0",
        "node 1 (call): attribute body: function 0 has 1 parameter, but here it must have 2",
    ),
    "too few results": (
        asked([function([], IN)], *LOOPED), "bad_attribute", 1, 0, None, "/functions/0/outputs",
        "node 1 (scan): attribute body: the function must have at least 1 output, but has 0",
    ),
    "too many results": (
        asked(
            [function([1, 1], *DOUBLE["nodes"]), LOGICAL],
            IN, node("while", 0, body=0, condition=1, carries=1, max_steps=3), result(1),
        ), "bad_attribute", 1, 0, None, "/functions/0/outputs",
        "node 1 (while): attribute body: the function must have 1 output, but has 2",
    ),
    "a carry's dtype": (
        asked([NARROW], *LOOPED), "dtype_mismatch", 1, 0, None, "/functions/0/outputs/0",
        "node 1 (scan): carry 0 must have dtype float64, but the function returns float32",
    ),
    "a carry's shape": (
        asked([function([1], IN, node("sum", 0))], *LOOPED, feeds=[V]),
        "shape_mismatch", 1, 0, None, "/functions/0/outputs/0",
        "node 1 (scan): carry 0 must have shape [3], but the function returns []",
    ),
    "branches": (
        asked([DOUBLE, NARROW], IN, node("greater", 0, 0), node("cond", 1, 0, then=0, otherwise=1), result(2)),
        "dtype_mismatch", 2, 1, None, "/functions/1/outputs/0",
        "node 2 (cond): result 0 must have dtype float64, but the function returns float32",
    ),
    "a condition": (
        asked([DOUBLE], IN, node("while", 0, body=0, condition=0, carries=1, max_steps=3), result(1)),
        "dtype_mismatch", 1, 0, None, "/functions/0/outputs/0",
        "node 1 (while): attribute condition: result 0 must have dtype bool, but the function returns float64",
    ),
    "a node inside": (
        asked([ADDS], *CALLED, feeds=[V]), "shape_mismatch", 1, 0, 2, "/functions/0/nodes/2",
        f"node 1 (call): function 0, node 2 (add): {CLASH}",
    ),
    "a node of a function in a function": (
        asked([ADDS, function([2], *CALLED)], IN, node("call", 0, body=1), result(1), feeds=[V]),
        "shape_mismatch", 1, 0, 2, "/functions/0/nodes/2",
        f"node 1 (call): function 1, node 1 (call): function 0, node 2 (add): {CLASH}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CALL_SITE_ERRORS)
def test_mismatch_is_reported_at_the_call_site(client: Client, case: str) -> None:
    request, code, outer, inside, inner, place, detail = CALL_SITE_ERRORS[case]
    report = problem(client.post("/v1/forward", json=request), 422, code)
    assert report["detail"] == detail
    assert (report["node"], report.get("function"), report.get("function_node")) == (outer, inside, inner)
    assert report["pointer"] == f"/graph{place}"


@pytest.mark.parametrize(("op", "attrs"), [("call", {}), ("map", {"sequences": 1})])
def test_data_error_is_reported_at_its_node(client: Client, op: str, attrs: Json) -> None:
    picks = function([2], IN, IN, node("embedding", 0, 1))
    outer = function([3], IN, IN, node("call", 0, 1, body=0, recompute=True), result(2))
    nodes = (IN, IN, node(op, 0, 1, body=1, **attrs), result(2))
    feeds = [feed(0, [3, 2], [1.0] * 6), feed(1, [2], [0, 7], "int64")]
    report = problem(
        client.post("/v1/forward", json=asked([picks, outer], *nodes, feeds=feeds)), 422, "index_out_of_range"
    )
    assert (report["node"], report["function"], report["function_node"]) == (2, 0, 2)
    assert report["pointer"] == "/graph/functions/0/nodes/2/operands/1"
    assert report["detail"].startswith(f"node 2 ({op}): function 1, node 2 (call): function 0, node 2 (embedding): ")


# ---------------------------------------------------------------- malformed functions


#: an unused function, and the error: code, node of the function, pointer within it, detail
MALFORMED_FUNCTIONS: dict[str, tuple[Any, str, int | None, str, str]] = {
    "itself": (
        function([2], *CALLED), "bad_attribute", 1, "/nodes/1/attrs/body",
        "function 0, node 1 (call): attribute body must be the index of an earlier function (there is none), but is 0",
    ),
    "a parameter": (
        function([0], P), "invalid_field", 0, "/nodes/0/op",
        "function 0, node 0 (parameter): a function cannot have parameter nodes: use input nodes",
    ),
    "an unknown op": (
        function([1], IN, node("nope", 0)), "unknown_op", 1, "/nodes/1/op",
        "function 0, node 1 (nope): there is no op called “nope”; GET /v1/ops lists all ops",
    ),
    "a reference": (
        function([1], IN, node("neg", 5)), "bad_reference", 1, "/nodes/1/operands/0",
        "function 0, node 1 (neg): operand 0 must be an earlier node, 0 to 0, but is 5",
    ),
    "a count": (
        function([1], IN, node("add", 0)), "operand_count", 1, "/nodes/1/operands",
        "function 0, node 1 (add): takes 2 operands (a, b), but got 1",
    ),
    "an attribute": (
        function([1], IN, node("mul_scalar", 0, scalar="2")), "bad_attribute", 1, "/nodes/1/attrs/scalar",
        "function 0, node 1 (mul_scalar): attribute scalar must be a finite number, but is “2”",
    ),
    "an attribute that is a tensor": (
        function([0], node("constant", value=tensor([2], [1]))), "bad_tensor", 0, "/nodes/0/attrs/value/data",
        "function 0, node 0: graph.functions[0].nodes[0].attrs.value must hold 2 elements to be float64[2], but holds",
    ),
    "an output": (
        function([4], IN), "bad_reference", None, "/outputs/0",
        "function 0: outputs[0] must be a node of the function, 0 to 0, but is 4",
    ),
    "an output of several": (
        function([1], IN, node("split", 0, sizes=[1])), "bad_reference", 1, "/outputs/0",
        "function 0, node 1 (split): outputs[0] names this node, which has several outputs: name a get_output node",
    ),
    "no outputs": (
        {"nodes": []}, "invalid_field", None, "/outputs",
        "function 0: graph.functions[0].outputs is required, but is missing or null",
    ),
    "no object": (
        5, "invalid_field", None, "", "function 0: graph.functions[0] must be an object, but is a whole number",
    ),
    "a field": (
        function([0], IN, opset=2), "invalid_field", None, "/opset",
        "function 0: graph.functions[0] has no field “opset” (known: name, nodes, outputs)",
    ),
    "many fields": (
        function([0], IN, opset=2, feeds=[]), "invalid_field", None, "/opset",
        "function 0: graph.functions[0] has no field “opset” (known: name, nodes, outputs)",
    ),
    "a field of a node": (
        function([0], {"op": "input", "operand": []}), "invalid_field", 0, "/nodes/0/operand",
        "function 0, node 0: graph.functions[0].nodes[0] has no field “operand” (known: attrs, name, op, operands);",
    ),
    "many fields of a node": (
        function([0], dict.fromkeys("abcde", 0)), "invalid_field", 0, "/nodes/0/a",
        "function 0, node 0: graph.functions[0].nodes[0] has no field “a” (known: attrs, name, op, operands)",
    ),
    "a long name": (
        function([0], IN, name="n" * 129), "invalid_field", None, "/name",
        "function 0: graph.functions[0].name must be at most 128 characters long, but is 129 characters long",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MALFORMED_FUNCTIONS)
def test_malformed_function_is_refused_even_if_unused(client: Client, case: str) -> None:
    wrong, code, inner, place, detail = MALFORMED_FUNCTIONS[case]
    report = problem(client.post("/v1/forward", json=asked([wrong], IN)), 422, code)
    assert report["detail"].startswith(detail)
    assert "node" not in report
    assert (report["function"], report.get("function_node")) == (0, inner)
    assert report["pointer"] == f"/graph/functions/0{place}"


def test_function_cannot_refer_to_a_later_one(client: Client) -> None:
    report = problem(
        client.post(
            "/v1/forward", json=asked([DOUBLE, function([2], IN, node("call", 0, body=2), result(1)), DOUBLE], IN)
        ),
        422,
        "bad_attribute",
    )
    assert (report["function"], report["function_node"]) == (1, 1)
    assert report["detail"].endswith("attribute body must be the index of an earlier function, 0 to 0, but is 2")


def test_all_errors_of_a_function_are_reported(client: Client) -> None:
    wrong = function([0], IN, node("nope", 0), node("neg", 7), node("sums", 0))
    report = problem(client.post("/v1/forward", json=asked([DOUBLE, wrong], IN)), 422, "unknown_op")
    assert [each["pointer"] for each in report["errors"]] == [
        "/graph/functions/1/nodes/1/op", "/graph/functions/1/nodes/3/op", "/graph/functions/1/nodes/2/operands/0",
    ]  # fmt: skip


def test_unused_function_is_not_type_checked(client: Client) -> None:
    clash = function([2], node("full", shape=[2]), node("full", shape=[3]), node("add", 0, 1))
    assert values(client, asked([clash], IN)) == [1]


def test_feed_beyond_the_graph_is_refused(client: Client) -> None:
    report = problem(
        client.post("/v1/forward", json=asked([DOUBLE], *CALLED, feeds=[X, feed(3, [], [1])])), 422, "unexpected_feed"
    )
    assert report["detail"] == "feeds name node 3, but the graph has 3 nodes"


@pytest.mark.parametrize("opset", [None, 1])
@pytest.mark.parametrize("functions", [[{}], [DOUBLE], ["x"], [dict.fromkeys("abcdef", 0)]])
def test_opset_1_has_no_functions(client: Client, opset: int | None, functions: list[Any]) -> None:
    graph = {"nodes": [IN], "functions": functions} | ({} if opset is None else {"opset": opset})
    report = problem(client.post("/v1/forward", json={"graph": graph, "feeds": [X]}), 422, "invalid_field")
    del report["request_id"]
    assert report == {
        "type": "/docs/errors/invalid_field",
        "title": "Invalid field",
        "status": 422,
        "detail": 'functions need opset 2: add "opset": 2 to the graph',
        "code": "invalid_field",
        "expected": "an empty list",
        "got": "functions",
        "pointer": "/graph/functions",
    }
    assert client.post("/v1/forward", json={"graph": graph | {"functions": []}, "feeds": [X]}).status_code == 200


# ---------------------------------------------------------------- limits


def twice(functions: list[Json]) -> Json:
    """Build a function that applies the last one twice."""
    body = len(functions) - 1
    return function([4], IN, node("call", 0, body=body), result(1), node("call", 2, body=body), result(3))


def quickly_refused(client: Client, request: Json, code: str) -> Json:
    """Return the report, which must take no longer than reading the request."""
    started = time.perf_counter()
    report = problem(client.post("/v1/gradients", json=request), 413, code)
    assert time.perf_counter() - started < 5
    return report


def test_exponential_calls_are_refused_before_expansion(client: Client) -> None:
    functions = [DOUBLE]
    for _ in range(40):
        functions.append(twice(functions))
    graph = (P, node("call", 0, body=40), result(1))
    assert quickly_refused(client, asked(functions, *graph), "over_budget")["got"] == "41 levels"


def test_functions_of_many_calls_are_refused_before_expansion(client: Client) -> None:
    functions = [DOUBLE]
    for last in range(12):
        calls = [each for k in range(0, 64, 2) for each in (node("call", k, body=last), result(k + 1))]
        functions.append(function([64], IN, *calls))
    report = quickly_refused(client, asked(functions, P, node("call", 0, body=12), result(1)), "too_many_nodes")
    assert int(report["got"].split()[2]) > 32**12


@pytest.mark.parametrize("most", [3, 16])
def test_function_nesting_depth_is_limited(make_client: Callable[..., Client], most: int) -> None:
    client = make_client(max_depth=most)
    functions = [DOUBLE, *(function([2], IN, node("call", 0, body=i), result(1)) for i in range(most))]
    for depth in (most, most + 1):
        request = asked(functions, IN, node("call", 0, body=depth - 1), result(1))
        answer = client.post("/v1/forward", json=request)
        if depth <= most:
            assert answer.status_code == 200
        else:
            report = problem(answer, 413, "over_budget")
            expected = f"functions are nested {depth} levels deep, and the limit is {most}"
            assert report["detail"] == expected
    plan = client.post(
        "/v1/plan", json={"graph": {"nodes": [IN]}, "types": [{"node": 0, "dtype": "float64", "shape": []}]}
    ).json()
    assert plan["limits"]["function_depth"] == most


@pytest.mark.slow
def test_long_function_chain_does_not_recurse_deeply(client: Client) -> None:
    functions = [DOUBLE, *(function([2], IN, node("call", 0, body=i), result(1)) for i in range(5000))]
    report = quickly_refused(client, asked(functions, P, node("call", 0, body=5000), result(1)), "over_budget")
    assert report["got"] == "5001 levels"


def test_nested_scan_lengths_multiply(client: Client) -> None:
    loops = [(node("scan", 0, body=k, carries=1, length=10**6), result(1)) for k in range(4)]
    functions = [DOUBLE, *(function([2], IN, *loop) for loop in loops[:3])]
    report = problem(client.post("/v1/forward", json=asked(functions, IN, *loops[3])), 413, "over_budget")
    assert report["detail"].startswith("this needs 32000000000000")


@pytest.mark.parametrize(
    ("outputs", "index", "length", "unit"), [([0, 0], 1, 10**12, "bytes"), ([0], 0, 10**15, "FLOP")]
)
def test_stacked_outputs_and_empty_steps_have_a_cost(
    client: Client, outputs: list[int], index: int, length: int, unit: str
) -> None:
    nodes = (IN, node("scan", 0, body=0, carries=1, length=length), result(1, index))
    report = problem(client.post("/v1/forward", json=asked([function(outputs, IN)], *nodes)), 413, "over_budget")
    assert unit in report["detail"]


def test_function_nodes_count_towards_max_nodes(make_client: Callable[..., Client]) -> None:
    """Empty functions count as well."""
    client = make_client(max_nodes=20)
    for functions in ([function([0], *[IN] * 9), function([0], *[IN] * 10)], [function([])] * 19):
        request = asked(functions, IN)
        assert client.post("/v1/forward", json=request).status_code == 200
        request["graph"]["nodes"].append(IN)
        report = problem(client.post("/v1/forward", json=request), 413, "too_many_nodes")
        assert report["detail"] == "the graph and its functions have at least 21 nodes, and the limit is 20"


# ---------------------------------------------------------------- non-finite values


FALLING = function([2], IN, node("add_scalar", 0, scalar=-1.0), node("sqrt", 1))
#: nodes after a parameter of 2.5, functions, and the first non-finite value: node, function, its node, steps
NOT_FINITE: dict[str, tuple[list[Json], list[Json], tuple[int, int, int, list[int] | None]]] = {
    "scan": ([node("scan", 0, body=0, carries=1, length=9), result(1)], [FALLING], (1, 0, 2, [2])),
    "a call, written in place": (
        [node("sub", 0, 0), node("call", 1, body=0), result(2)],
        [function([1], IN, node("log", 0))],
        (2, 0, 1, None),
    ),
    "a function of a function": (
        [node("scan", 0, body=1, carries=1, length=9), result(1)],
        [FALLING, function([2], IN, node("call", 0, body=0, recompute=True), result(1))],
        (1, 0, 2, [2]),
    ),
    "on the way back": (
        [node("sub", 0, 0), node("scan", 1, body=0, carries=1, length=2), result(2)],
        [function([1], IN, node("sqrt", 0))],
        (2, 0, 1, [1]),
    ),
    "from what it states": (
        [node("scan", 0, body=0, carries=1, length=2), result(1)],
        [function([2], IN, node("full", fill=1e300), node("square", 1))],
        (1, 0, 2, [0]),
    ),
}


@pytest.mark.parametrize("case", NOT_FINITE)
def test_first_nonfinite_value_is_located_in_a_function(client: Client, case: str) -> None:
    behind, functions, (outer, inside, inner, steps) = NOT_FINITE[case]
    request = asked(functions, P, *behind, feeds=[feed(0, [], [2.5])], diagnose=True)
    answer = client.post("/v1/gradients", json=request)
    first = answer.json()["stats"]["first_nonfinite"]
    assert (first["node"], first["op"]) == (outer, behind[outer - 1]["op"])
    assert (first["function"], first["function_node"], first.get("steps")) == (inside, inner, steps)
    assert first["backward"] == (case == "on the way back")
