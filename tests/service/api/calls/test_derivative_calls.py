"""The other computing calls over HTTP: fields, order, defaults and errors of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, get_type_hints

import jsonschema_rs
import numpy as np
import pytest

from schemas.calls.plan import PlanRequest
from service.api.calls import calls, computing_calls
from tests.conftest import Client
from tests.reference.client import array
from tests.service.described import closed
from tests.service.support import SQUARES, feed, node, problem, request, tensor

Json = dict[str, Any]

TYPED = {"graph": SQUARES["graph"], "types": [{"node": 0, "dtype": "float64", "shape": [2]}]}

#: call → a valid request; a call that is not listed gets its first example
ASKED: dict[str, Json] = {name: next(iter(call.examples.values())) for name, call in calls().items()} | {
    "gradients": SQUARES,
    "forward": SQUARES,
    "vjp": SQUARES | {"outputs": [1], "cotangents": [feed(1, [2], [1, 10])]},
    "jvp": SQUARES | {"tangents": [feed(0, [2], [1, 10])]},
    "jacobian": SQUARES | {"outputs": [1]},
    "hvp": SQUARES | {"vectors": [feed(0, [2], [1, 10])]},
    "hessian": SQUARES,
    "batch": SQUARES | {"mapped": [0], "feeds": [feed(0, [3, 2], [1, 2, 3, 4, 5, 6])]},
    "plan": TYPED,
    "check": SQUARES,
    "differentiate": TYPED,
}


def ask(client: Client, call: str, **more: Any) -> Json:
    answer = client.post(f"/v1/{call}", json=ASKED[call] | more)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.parametrize(
    ("call", "fields"),
    [
        ("vjp", {"gradients": [{"node": 0, "tensor": tensor([2], [2.0, 40.0])}], "disconnected": []}),
        ("jvp", {"tangents": [{"node": 2, "tensor": tensor([], [42.0])}]}),
        ("jacobian", {"jacobian": [{"of": 1, "wrt": 0, "tensor": tensor([2, 2], [2.0, 0.0, 0.0, 4.0])}]}),
        (
            "hvp",
            {
                "gradients": [{"node": 0, "tensor": tensor([2], [2.0, 4.0])}],
                "hvp": [{"node": 0, "tensor": tensor([2], [2.0, 20.0])}],
                "disconnected": [],
            },
        ),
        (
            "hessian",
            {
                "gradients": [{"node": 0, "tensor": tensor([2], [2.0, 4.0])}],
                "hessian": [{"row": 0, "column": 0, "tensor": tensor([2, 2], [2.0, 0.0, 0.0, 2.0])}],
                "disconnected": [],
            },
        ),
        (
            "batch",
            {
                "values": [{"node": 2, "tensor": tensor([3], [5.0, 25.0, 61.0])}],
                "gradients": [{"node": 0, "tensor": tensor([3, 2], [2.0, 4.0, 6.0, 8.0, 10.0, 12.0])}],
                "disconnected": [],
            },
        ),
        ("check", {"passed": True, "uncertified": [], "directions": 4, "tolerance": 1e-6}),
    ],
)
def test_answer_fields(client: Client, call: str, fields: Json) -> None:
    answer = ask(client, call)
    assert {name: answer[name] for name in fields} == fields
    others = {"check": {"errors", "stats"}}.get(call, {"values", "stats"})
    assert set(answer) == set(fields) | others
    assert set(answer["stats"]) == {
        "device", "plan_cached", "execute_ms", "tier", "peak_bytes", "recomputed_flops", "graph_id",
        "opset", "dtype",
        "versions",
    }  # fmt: skip


@pytest.mark.parametrize("call", sorted(ASKED))
def test_answers_match_the_openapi_document(client: Client, call: str) -> None:
    document = client.get("/openapi.json").json()
    schema = document["paths"][f"/v1/{call}"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    validator = jsonschema_rs.validator_for({**schema, "components": document["components"]})
    validator.validate(ask(client, call))


@pytest.mark.parametrize("call", sorted(set(ASKED) - {"plan", "differentiate"}))
def test_stats_identify_the_graph_and_the_versions(client: Client, call: str) -> None:
    stats = ask(client, call)["stats"]
    assert stats["graph_id"] == "64a0b9af0ea5643b8e3dfab43d2fdf490e923554fd0ec428a224da892efb1e19"
    assert (stats["opset"], stats["dtype"], stats["device"]) == (1, "float64", "cpu")
    assert stats["versions"]["numpy"] == np.__version__


def test_batched_cotangents(client: Client) -> None:
    answer = ask(client, "vjp", batched=True, cotangents=[feed(1, [2, 2], [1, 0, 0, 1])])
    assert answer["gradients"] == [{"node": 0, "tensor": tensor([2, 2], [2.0, 0.0, 0.0, 4.0])}]
    assert answer["values"] == [{"node": 1, "tensor": tensor([2], [1.0, 4.0])}]


def test_results_are_in_the_order_of_the_request(client: Client) -> None:
    leaves = [node("parameter"), node("parameter")]
    nodes = [*leaves, node("mul", 0, 1), node("square", 2)]
    body = request(*nodes, feeds=[feed(0, [], [2]), feed(1, [], [3])], wrt=[1, 0])
    blocks = client.post("/v1/jacobian", json=body | {"outputs": [3, 2]}).json()["jacobian"]
    assert [(b["of"], b["wrt"], *b["tensor"]["data"]) for b in blocks] == [
        (3, 1, 24.0), (3, 0, 36.0), (2, 1, 2.0), (2, 0, 3.0)
    ]  # fmt: skip
    blocks = client.post("/v1/hessian", json=body).json()["hessian"]
    assert [(b["row"], b["column"], *b["tensor"]["data"]) for b in blocks] == [
        (1, 1, 8.0), (1, 0, 24.0), (0, 1, 24.0), (0, 0, 18.0)
    ]  # fmt: skip
    given = body | {"vectors": [feed(0, [], [0]), feed(1, [], [1])], "outputs": [2, 3]}
    answer = client.post("/v1/hvp", json=given).json()
    assert [(h["node"], *h["tensor"]["data"]) for h in answer["hvp"]] == [(1, 8.0), (0, 24.0)]
    assert [v["node"] for v in answer["values"]] == [2, 3]


def test_base64_for_every_call(client: Client) -> None:
    for call in sorted(set(ASKED) - {"plan", "check", "differentiate"}):
        plain, packed = ask(client, call), ask(client, call, encoding="base64")
        for kind in set(plain) - {"stats", "disconnected"}:
            for a, b in zip(plain[kind], packed[kind], strict=True):
                assert "data_b64" in b["tensor"]
                np.testing.assert_array_equal(array(a["tensor"]), array(b["tensor"]))


def test_batch_of_values_alone_has_no_gradients(client: Client) -> None:
    body = request(node("input"), node("sum", 0), mapped=[0], feeds=[feed(0, [2, 2], [1, 2, 3, 4])])
    answer = client.post("/v1/batch", json=body).json()
    assert set(answer) == {"values", "stats"}
    assert answer["values"][0]["tensor"] == tensor([2], [3.0, 7.0])


def test_batch_equals_separate_calls(client: Client) -> None:
    rng = np.random.default_rng(3)
    feeds = rng.uniform(-1, 1, (64, 2))
    many = ask(client, "batch", feeds=[feed(0, [64, 2], feeds.ravel().tolist())])
    for n in range(64):
        one = ask(client, "gradients", feeds=[feed(0, [2], feeds[n].tolist())])
        for kind in ("values", "gradients"):
            np.testing.assert_allclose(array(many[kind][0]["tensor"])[n], array(one[kind][0]["tensor"]), 1e-14)


class TestPlan:
    """Estimates of a plan compared with the actual call."""

    @pytest.mark.parametrize("call", sorted(set(ASKED) - {"plan", "check", "differentiate"}))
    def test_plan_matches_the_call(self, client: Client, call: str) -> None:
        sent = ASKED[call]
        fields = {name: sent[name] for name in ("graph", "of", "wrt", "outputs", "mapped") if name in sent}
        types = [{"node": f["node"], "dtype": "float64", "shape": f["tensor"]["shape"]} for f in sent["feeds"]]
        answer = client.post("/v1/plan", json={**fields, "types": types, "call": call})
        assert answer.status_code == 200, answer.text
        plan, response = answer.json(), client.post(f"/v1/{call}", json=sent)
        assert plan["peak_bytes"] == response.json()["stats"]["peak_bytes"]
        assert plan["response_bytes"] >= len(response.content)
        assert plan["admitted"] is True

    def test_plan_takes_every_field_but_those_of_values(self) -> None:
        values = {"feeds", "store", "diagnose", "cotangent", "cotangents", "batched", "tangents", "vectors"}
        for call in computing_calls().values():
            assert {*get_type_hints(call.request)} - values <= {*get_type_hints(PlanRequest)}, call.name

    @pytest.mark.parametrize("layout", ["blocks", "matrix", None])
    def test_plan_bounds_a_hessian_in_either_layout(self, client: Client, layout: str | None) -> None:
        body = request(node("parameter"), node("square", 0), node("sum", 1), feeds=[feed(0, [3], [1.0, 2.0, 3.0])])
        asked = {"graph": body["graph"], "types": [{"node": 0, "dtype": "float64", "shape": [3]}], "layout": layout}
        plan = client.post("/v1/plan", json=asked | {"call": "hessian"}).json()
        assert plan["response_bytes"] >= len(client.post("/v1/hessian", json=body | {"layout": layout}).content)

    @pytest.mark.parametrize("encoding", ["json", "base64"])
    def test_response_bytes_bound_the_answer(self, client: Client, encoding: str) -> None:
        """Covers long numbers and many of them."""
        values = (np.random.default_rng(0).uniform(-1, 1, 5000) * 1e-300).tolist()
        body = request(node("parameter"), node("square", 0), node("sum", 1), feeds=[feed(0, [5000], values)])
        body |= {"outputs": [0, 1, 2], "encoding": encoding}
        types = [{"node": 0, "dtype": "float64", "shape": [5000]}]
        asked = {name: body[name] for name in ("graph", "outputs", "encoding")} | {"types": types}
        bound = client.post("/v1/plan", json=asked).json()["response_bytes"]
        assert len(client.post("/v1/gradients", json=body).content) <= bound

    def test_plan_of_a_huge_graph_is_not_refused(self, client: Client) -> None:
        huge = [{"node": 0, "dtype": "float64", "shape": [2**30, 2**30]}]
        body = {"graph": {"nodes": [node("parameter"), node("matmul", 0, 0), node("max", 1)]}, "types": huge}
        answer = client.post("/v1/plan", json=body)
        assert answer.status_code == 200, answer.text
        plan = answer.json()
        assert plan["admitted"] is False
        assert plan["forward_flops"] == 2**63 - 1, "as much as 64 bits hold"
        assert plan["nodes"][1]["shape"] == [2**30, 2**30]
        assert plan["limits"]["nodes"] == 100_000

    def test_plan_over_a_limit_is_not_admitted(self, make_client: Callable[..., Client]) -> None:
        for limit in ({"max_bytes": 100}, {"max_flops": 3}, {"max_response_bytes": 600}):
            small = make_client(**limit)
            assert small.post("/v1/plan", json=TYPED).json()["admitted"] is False
            problem(small.post("/v1/gradients", json=SQUARES), 413, "over_budget")

    def test_plan_does_not_execute(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        def forbidden(*_: object) -> None:
            raise AssertionError("executed")

        monkeypatch.setattr("engine.runtime.numpy_backend.NumPyExecutor.run", forbidden)
        for call in ("plan", "differentiate"):
            ask(client, call)

    def test_million_derivatives_in_one_request(self, client: Client) -> None:
        """A 1,000 × 1,000 block of a two-layer network, in the planned memory."""
        nodes = [
            node("input"), node("input"), node("parameter"), node("matmul", 0, 2), node("tanh", 3), node("matmul", 1, 4)
        ]  # fmt: skip
        shapes = [[50, 1000], [1000, 50], [1000]]
        rng = np.random.default_rng(0)
        arrays = [rng.uniform(-0.1, 0.1, shape) for shape in shapes]
        types = [{"node": i, "dtype": "float64", "shape": shape} for i, shape in enumerate(shapes)]
        plan = client.post("/v1/plan", json={"graph": {"nodes": nodes}, "types": types, "call": "jacobian"}).json()
        feeds = [feed(i, shapes[i], a.ravel().tolist()) for i, a in enumerate(arrays)]
        answer = client.post("/v1/jacobian", json=request(*nodes, feeds=feeds, encoding="base64")).json()
        assert answer["stats"]["peak_bytes"] == plan["peak_bytes"] < 40_000_000
        first, second, x = arrays
        expected = second @ (first * (1 - np.tanh(first @ x) ** 2)[:, None])
        np.testing.assert_allclose(array(answer["jacobian"][0]["tensor"]), expected, 1e-9, 1e-15)


class TestDifferentiate:
    """Gradients returned as a graph."""

    def graphs(self) -> list[list[Json]]:
        w = node("parameter")
        labels = node("constant", value=tensor([2], [1, 0], "int64"))
        return [
            [w, node("exp", 0), node("mul", 1, 0), node("sum", 2)],
            [w, labels, node("tanh", 0), node("cross_entropy", 2, 1)],
            [w, node("reshape", 0, shape=[1, 1, 2, 2]), node("conv2d", 1, 1), node("sum", 2)],
            [w, node("attention", 0, 0, 0, causal=True), node("square", 1), node("mean", 2)],
            [w, node("split", 0, sizes=[1, 1]), node("get_output", 1, index=0), node("get_output", 1, index=1),
             node("mul", 2, 3), node("sin", 4), node("sum", 5)],
            [w, node("sin", 0), node("grad", 1, 0), node("square", 2), node("sum", 3)],
            [w, node("SQUARE", 0), node("Sum", 1, axes=[])],
        ]  # fmt: skip

    @pytest.mark.parametrize("which", range(7))
    def test_differentiate_twice(self, client: Client, which: int) -> None:
        nodes = self.graphs()[which]
        feeds = [feed(0, [2, 2], [0.1, -0.2, 0.3, 0.5])]
        graph, gradient = self.derived(client, {"nodes": nodes}, None)
        assert graph["nodes"][: len(nodes)] == [{**n, "op": n["op"].lower()} for n in nodes]
        value = self.value(client, graph, gradient, feeds)
        truth = client.post("/v1/gradients", json=request(*nodes, feeds=feeds)).json()["gradients"][0]["tensor"]
        np.testing.assert_allclose(value, array(truth), 1e-12, 1e-14)
        count = len(graph["nodes"])
        graph["nodes"] += [node("square", gradient), node("sum", count)]
        again, second = self.derived(client, graph, count + 1)
        last = len(nodes)
        nested = [*nodes, node("grad", last - 1, 0), node("square", last), node("sum", last + 1)]
        truth = client.post("/v1/gradients", json=request(*nested, feeds=feeds)).json()["gradients"][0]["tensor"]
        np.testing.assert_allclose(self.value(client, again, second, feeds), array(truth), 1e-12, 1e-14)

    def derived(self, client: Client, graph: Json, of: int | None) -> tuple[Json, int]:
        types = [{"node": 0, "dtype": "float64", "shape": [2, 2]}]
        body = {"graph": graph, "types": types} | ({} if of is None else {"of": of})
        answer = client.post("/v1/differentiate", json=body)
        assert answer.status_code == 200, answer.text
        response = answer.json()
        self.validator(client).validate(response["graph"])
        return json.loads(json.dumps(response["graph"], allow_nan=False)), response["gradients"][0]["gradient_node"]

    def validator(self, client: Client) -> Any:
        """A validator of the documented graph that allows no other ops and attributes."""
        components = closed(client.get("/openapi.json").json()["components"])
        for model in ("Graph", "GraphNode", "Attrs", "Tensor"):
            components["schemas"][model]["additionalProperties"] = False
        return jsonschema_rs.validator_for({"$ref": "#/components/schemas/Graph", "components": components})

    def value(self, client: Client, graph: Json, of: int, feeds: list[Json]) -> Any:
        answer = client.post("/v1/forward", json={"graph": graph, "feeds": feeds, "outputs": [of]})
        assert answer.status_code == 200, answer.text
        return array(answer.json()["values"][0]["tensor"])

    def test_disconnected_parameter(self, client: Client) -> None:
        nodes = [node("parameter"), node("parameter"), node("sum", 0)]
        types = [{"node": i, "dtype": "float64", "shape": [2]} for i in range(2)]
        response = client.post("/v1/differentiate", json={"graph": {"nodes": nodes}, "types": types}).json()
        assert response["disconnected"] == [1]
        assert len({g["gradient_node"] for g in response["gradients"]}) == 2


class TestDiagnose:
    """Diagnosis of the first NaN or infinity."""

    BAD = request(node("parameter"), node("log", 0), node("sum", 1), feeds=[feed(0, [2], [0, 1])])

    def test_first_nonfinite_node_is_reported(self, client: Client) -> None:
        stats = client.post("/v1/gradients", json=self.BAD | {"diagnose": True}).json()["stats"]
        assert stats["first_nonfinite"] == {
            "node": 1, "op": "log", "backward": False, "computed": "log", "operands": [{"low": 0.0, "high": 1.0}]
        }  # fmt: skip

    def test_field_is_absent_if_not_requested_or_all_finite(self, client: Client) -> None:
        assert "first_nonfinite" not in client.post("/v1/gradients", json=self.BAD).json()["stats"]
        assert "first_nonfinite" not in ask(client, "gradients", diagnose=True)["stats"]

    def test_infinite_bound_is_left_out(self, client: Client) -> None:
        x, mask = node("parameter"), node("constant", value=tensor([2, 2], [0, 0, 1, 1], "bool"))
        body = request(x, mask, node("attention", 0, 0, 0, 1), feeds=[feed(0, [2, 1], [1, 2])], diagnose=True)
        first_nonfinite = client.post("/v1/forward", json=body).json()["stats"]["first_nonfinite"]
        assert (first_nonfinite["op"], list(first_nonfinite["operands"][0])) == ("attention", ["high"])


@pytest.mark.parametrize("call", sorted(ASKED))
def test_every_call_accepts_an_encoding(client: Client, call: str) -> None:
    answer = client.post(f"/v1/{call}", json=ASKED[call] | {"encoding": "base64"})
    assert answer.status_code == 200, answer.text
    wrong = client.post(f"/v1/{call}", json=ASKED[call] | {"encoding": "base32"})
    assert problem(wrong, 422, "invalid_field")["detail"] == "encoding must be one of json, base64, but is “base32”"
