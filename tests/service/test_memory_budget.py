"""`memory_budget`: validation, enforcement, reported figures, and separate plans for separate budgets."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from service.api.media import JSON
from service.core.settings import Settings
from service.workers.executions.execution import TaskContext
from service.workers.task import Task
from service.workers.worker import CacheHit, Worker
from tests.conftest import Client
from tests.service.support import SQUARES, Json, feed, node, problem

EXTENT, STEPS = 50, 400
LIMIT = 1 << 30
BIG = {"max_bytes": LIMIT}
#: each computing call, with the fields that it takes beyond SQUARES
RUNS: dict[str, Json] = {
    "forward": {},
    "gradients": {},
    "vjp": {"cotangents": [feed(2, [], [1.0])]},
    "jvp": {"tangents": [feed(0, [2], [1.0, 0.0])]},
    "jacobian": {"outputs": [1]},
    "hvp": {"vectors": [feed(0, [2], [1.0, 0.0])]},
    "hessian": {},
    "batch": {"mapped": [0], "feeds": [feed(0, [1, 2], [1.0, 2.0])]},
    "check": {},
}


def chain(opset: int = 1, links: int = 60, **more: Any) -> Json:
    """Sum over a chain of sines and products with x; the gradient reads all of them."""
    nodes = [node("parameter"), node("sin", 0)]
    for i in range(links):
        nodes += [node("mul", 2 * i + 1, 0), node("sin", 2 * i + 2)]
    nodes.append(node("sum", len(nodes) - 1))
    x = [0.01 * k for k in range(EXTENT)]
    return {"graph": {"opset": opset, "nodes": nodes}, "feeds": [feed(0, [EXTENT], x)], **more}


def loop(length: int = STEPS, **more: Any) -> Json:
    """Sum after this many steps of a decay, each of which is saved for the backward pass."""
    step = [node("input"), node("input"), node("sin", 1), node("mul", 0, 2), node("sub", 1, 3)]
    nodes = [node("parameter"), node("input"), node("scan", 0, 1, body=0, carries=1, length=length)]
    nodes += [node("get_output", 2, index=0), node("sum", 3)]
    feeds = [feed(0, [], [0.01]), feed(1, [EXTENT], [1.0 + k for k in range(EXTENT)])]
    return {
        "graph": {"opset": 2, "functions": [{"nodes": step, "outputs": [4]}], "nodes": nodes},
        "feeds": feeds,
        **more,
    }


def gradients(client: Client, body: Json) -> Json:
    """Return the answer of `gradients`."""
    answer = client.post("/v1/gradients", json=body)
    assert answer.status_code == 200, answer.text
    content: Json = answer.json()
    return content


def planned(client: Client, body: Json) -> Json:
    """Return the answer of `plan` for the same request."""
    types = [
        {"node": each["node"], "dtype": each["tensor"]["dtype"], "shape": each["tensor"]["shape"]}
        for each in body["feeds"]
    ]
    answer = client.post("/v1/plan", json={**{k: v for k, v in body.items() if k != "feeds"}, "types": types})
    assert answer.status_code == 200, answer.text
    content: Json = answer.json()
    return content


@pytest.mark.parametrize("call", RUNS)
def test_every_computing_call_accepts_a_budget(client: Client, call: str) -> None:
    answer = client.post(f"/v1/{call}", json=SQUARES | RUNS[call] | {"memory_budget": 1 << 20})
    assert answer.status_code == 200, answer.text
    assert answer.json()["stats"]["recomputed_flops"] == 0


@pytest.mark.parametrize("call", RUNS)
def test_budget_of_one_byte_is_refused(client: Client, call: str) -> None:
    problem(client.post(f"/v1/{call}", json=SQUARES | RUNS[call] | {"memory_budget": 1}), 413, "over_budget")


@pytest.mark.parametrize("call", ["forward", "check", "plan"])
@pytest.mark.parametrize("wrong", [0, -1, LIMIT + 1, 2**62])
def test_budget_out_of_range_is_refused(make_client: Callable[..., Client], call: str, wrong: int) -> None:
    body = SQUARES | {"memory_budget": wrong}
    if call == "plan":
        body = {**body, "types": [{"node": 0, "dtype": "float64", "shape": [2]}]}
        del body["feeds"]
    report = problem(make_client(**BIG).post(f"/v1/{call}", json=body), 422, "invalid_field")
    assert report["pointer"] == "/memory_budget"
    assert report["detail"] == f"memory_budget must be 1 to {LIMIT}, but is {wrong}"
    assert (report["expected"], report["got"]) == (f"1 to {LIMIT}", str(wrong))


@pytest.mark.parametrize("wrong", ["1", 1.5, True, [1], 2**70])
def test_budget_must_be_an_integer(client: Client, wrong: object) -> None:
    report = problem(client.post("/v1/forward", json=SQUARES | {"memory_budget": wrong}), 422, "invalid_field")
    assert report["pointer"] == "/memory_budget"


def test_differentiate_takes_no_budget(client: Client) -> None:
    body = {"graph": SQUARES["graph"], "types": [], "memory_budget": 1000}
    problem(client.post("/v1/differentiate", json=body), 422, "invalid_field")


@pytest.mark.parametrize("body", [chain(), chain(2), loop()], ids=["opset 1", "opset 2", "loop"])
def test_smaller_budget_recomputes_with_equal_results(client: Client, body: Json) -> None:
    free = gradients(client, body)
    budget = free["stats"]["peak_bytes"] // 3
    spared = gradients(client, body | {"memory_budget": budget})
    assert spared["stats"]["peak_bytes"] <= budget
    assert spared["stats"]["recomputed_flops"] > 0 == free["stats"]["recomputed_flops"]
    assert spared["values"] == free["values"]
    for one, other in zip(spared["gradients"], free["gradients"], strict=True):
        assert one["tensor"]["data"] == pytest.approx(other["tensor"]["data"], rel=1e-12)


@pytest.mark.parametrize("body", [chain(), loop()], ids=["network", "loop"])
def test_plan_reports_the_chosen_and_the_fastest_plan(client: Client, body: Json) -> None:
    free = planned(client, body)
    assert free["fastest_flops"] == free["forward_flops"] + free["backward_flops"]
    assert (free["fastest_peak_bytes"], free["recomputed_flops"]) == (free["peak_bytes"], 0)
    less = body | {"memory_budget": free["peak_bytes"] // 3}
    spared, stats = planned(client, less), gradients(client, less)["stats"]
    assert spared["admitted"]
    assert (spared["peak_bytes"], spared["recomputed_flops"]) == (stats["peak_bytes"], stats["recomputed_flops"])
    assert (spared["fastest_peak_bytes"], spared["fastest_flops"]) == (free["peak_bytes"], free["fastest_flops"])
    assert spared["forward_flops"] + spared["backward_flops"] == spared["fastest_flops"] + spared["recomputed_flops"]
    assert spared["forward_flops"] == free["forward_flops"]
    assert spared["saved_bytes"] < free["saved_bytes"]


def test_plan_does_not_admit_an_infeasible_budget(client: Client) -> None:
    free = planned(client, chain())
    beyond = planned(client, chain(memory_budget=EXTENT * 8))
    assert not beyond["admitted"]
    assert beyond["peak_bytes"] == beyond["fastest_peak_bytes"] == free["peak_bytes"]


def test_infeasible_budget_names_its_node(client: Client) -> None:
    report = problem(client.post("/v1/gradients", json=chain(memory_budget=EXTENT * 8)), 413, "over_budget")
    assert report["expected"] == f"at most {EXTENT * 8} bytes"
    assert report["pointer"] == f"/graph/nodes/{report['node']}"
    assert report["detail"].startswith(f"node {report['node']} (")


@pytest.mark.parametrize("budget", [EXTENT * 8, EXTENT * 8 * 6])
def test_infeasible_budget_of_a_loop_names_its_node(client: Client, budget: int) -> None:
    report = problem(client.post("/v1/gradients", json=loop(memory_budget=budget)), 413, "over_budget")
    assert (report["node"], report["pointer"]) in [(2, "/graph/nodes/2"), (1, "/graph/nodes/1")]


def test_server_limit_rematerializes_opset_2_and_refuses_opset_1(
    make_client: Callable[..., Client],
) -> None:
    peak = planned(make_client(), chain())["peak_bytes"]
    tight = make_client(max_bytes=peak // 3)
    report = problem(tight.post("/v1/gradients", json=chain()), 413, "over_budget")
    assert report["detail"] == f"this needs {peak} bytes, and the limit is {peak // 3} bytes"
    assert "node" not in report
    assert not planned(tight, chain())["admitted"]
    assert planned(tight, chain(2))["admitted"]
    assert gradients(tight, chain(2))["stats"]["recomputed_flops"] > 0
    budgeted = chain(memory_budget=peak // 3)
    assert gradients(tight, budgeted)["stats"]["recomputed_flops"] > 0


def test_check_stays_within_the_budget(client: Client) -> None:
    budget = gradients(client, chain())["stats"]["peak_bytes"] // 2
    spared = client.post("/v1/check", json=chain(memory_budget=budget)).json()
    assert spared["passed"]
    assert spared["stats"]["peak_bytes"] <= budget
    assert spared["stats"]["recomputed_flops"] > 0


def test_plan_nodes_do_not_depend_on_loop_length(client: Client) -> None:
    plan = planned(client, loop(10**6, memory_budget=16 << 20))
    assert plan["admitted"]
    assert plan["peak_bytes"] <= 16 << 20 < plan["fastest_peak_bytes"]
    assert [each["node"] for each in plan["nodes"]] == [each["node"] for each in planned(client, loop(10))["nodes"]]


def test_different_budgets_use_different_plans() -> None:
    worker = Worker(Settings(device="cpu", compile="off"))

    def plan_and_peak(body: Json) -> tuple[object, int]:
        """The cached plan of a repeated request, and its peak memory."""
        job = Task("gradients", json.dumps(body).encode(), "id", 60.0, time.monotonic() + 60.0, JSON, JSON)
        peak = orjson.loads(worker(job).body)["stats"]["peak_bytes"]
        hit = worker._read_request(TaskContext(job, None))
        assert isinstance(hit, CacheHit)
        return hit.cached.plan, peak

    free, peak = plan_and_peak(chain())
    some, most = plan_and_peak(chain(memory_budget=peak)), plan_and_peak(chain(memory_budget=peak // 3))
    assert len({free, some[0], most[0]}) == 3
    assert some[1] == peak > 3 * most[1] - 3
    assert plan_and_peak(chain()) == (free, peak)
