"""`precision`: validation, server limits, the precision that runs report, and separate plans."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, get_args
from uuid import uuid4

import numpy as np
import pytest

from engine import Deadline
from engine.compiler.plan import Plan
from engine.ir.run_context import NO_DEADLINE
from engine.ir.run_report import PRECISIONS, Precision
from engine.runtime.interpreter import Executor, Observer
from schemas.request import Precision as WirePrecision
from service.api.media import JSON, SAFETENSORS
from service.core.settings import Settings, read_settings
from service.workers.executions.execution import TaskContext
from service.workers.task import Reply, Task
from service.workers.worker import CacheHit, Worker
from tests.conftest import Client
from tests.service.api.safetensors_support import BINARY, body, unpacked
from tests.service.support import SQUARES, Json, feed, node, problem, request
from tests.service.test_memory_budget import RUNS

TYPED = {"graph": SQUARES["graph"], "types": [{"node": 0, "dtype": "float64", "shape": [2]}]}
FORMS = {"json": (JSON, "json"), "base64": (JSON, "base64"), "safetensors": (SAFETENSORS, "json")}
SETTINGS = Settings(device="cpu", workers=1, compile="off", log_level="error")


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make runs report the precision of a GPU that multiplies as coarsely as allowed."""
    execute = Executor.execute

    def execute_and_record(
        executor: Executor,
        plan: Plan,
        feeds: Mapping[Hashable, Any],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[Any]:
        results = execute(executor, plan, feeds, deadline, watch)
        deadline.record_precision(plan.precision)
        return results

    monkeypatch.setattr(Executor, "execute", execute_and_record)


def loss(values: list[float], **more: Any) -> Json:
    """Logarithm of x · x, by a matrix product."""
    nodes = [node("parameter"), node("matmul", 0, 0), node("log", 1)]
    return request(*nodes, feeds=[feed(0, [len(values)], values, "float32")], **more)


def product(call: str, dtype: str) -> Json:
    """A request of each call with a matrix product of this dtype."""
    nodes = [node("parameter"), node("matmul", 0, 0), node("sum", 1)]
    payload: Json = json.loads(json.dumps(SQUARES | RUNS[call]).replace("float64", dtype))
    return payload | {"graph": {"nodes": nodes}}


def job(payload: Json, accepted: str = JSON, call: str = "gradients") -> Task:
    return Task(call, json.dumps(payload).encode(), "id", 60.0, time.monotonic() + 60.0, JSON, accepted)


def stats(reply: Reply) -> Json:
    assert reply.status == 200, reply.body
    answer = unpacked(reply.body)[0] if reply.media_type == SAFETENSORS else json.loads(reply.body)
    content: Json = answer["stats"]
    return content


def cached_request(worker: Worker, payload: Json) -> CacheHit:
    """Return the cache hit of a repeated request."""
    assert worker(job(payload)).status == 200
    hit = worker._read_request(TaskContext(job(payload), None))
    assert isinstance(hit, CacheHit)
    return hit


# ---------------------------------------------------------------- validation


def test_engine_and_wire_have_the_same_precisions() -> None:
    assert get_args(WirePrecision.__value__) == PRECISIONS


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("call", RUNS)
def test_every_computing_call_accepts_it_and_cpus_use_float32(client: Client, call: str, precision: str) -> None:
    answer = client.post(f"/v1/{call}", json=product(call, "float32") | {"precision": precision})
    assert answer.status_code == 200, answer.text
    assert answer.json()["stats"].get("precision") == (None if call == "check" else "float32")


@pytest.mark.parametrize("call", RUNS)
def test_precision_is_absent_without_products_of_float32(client: Client, call: str) -> None:
    squares = json.loads(json.dumps(SQUARES | RUNS[call]).replace("float64", "float32"))
    for payload in (squares, product(call, "float64")):
        answer = client.post(f"/v1/{call}", json=payload)
        assert answer.status_code == 200, answer.text
        assert "precision" not in answer.json()["stats"]


def test_products_in_functions_and_convolutions_report_their_precision(client: Client) -> None:
    function = {"nodes": [node("input"), node("matmul", 0, 0)], "outputs": [1]}
    nodes = [node("parameter"), node("call", 0, body=0), node("get_output", 1, index=0)]
    fed = [feed(0, [2], [1, 2], "float32")]
    called = {"graph": {"opset": 2, "functions": [function], "nodes": nodes}, "feeds": fed}
    images = [feed(0, [1, 1, 3, 3], list(range(9)), "float32"), feed(1, [1, 1, 2, 2], [1, 2, 3, 4], "float32")]
    convolved = request(node("parameter"), node("parameter"), node("conv2d", 0, 1), node("sum", 2), feeds=images)
    for payload in (called, convolved):
        for _ in range(2):
            answer = client.post("/v1/gradients", json=payload)
            assert answer.status_code == 200, answer.text
            assert answer.json()["stats"]["precision"] == "float32"


@pytest.mark.parametrize("precision", PRECISIONS)
def test_plan_does_not_depend_on_precision(client: Client, precision: str) -> None:
    answer = client.post("/v1/plan", json=TYPED | {"precision": precision})
    assert answer.status_code == 200, answer.text
    assert answer.json() == client.post("/v1/plan", json=TYPED).json()


@pytest.mark.parametrize("call", [*RUNS, "plan"])
def test_unknown_precision_is_refused(client: Client, call: str) -> None:
    payload = TYPED if call == "plan" else SQUARES | RUNS[call]
    report = problem(client.post(f"/v1/{call}", json=payload | {"precision": "float16"}), 422, "invalid_field")
    assert report["pointer"] == "/precision"
    assert report["detail"] == "precision must be one of float32, tf32x3, tf32, bfloat16, but is “float16”"
    assert (report["expected"], report["got"]) == ("one of float32, tf32x3, tf32, bfloat16", "“float16”")


@pytest.mark.parametrize("wrong", [1, True, ["tf32"], {}, "", "TF32", "highest", "tf32 "])
def test_malformed_precision_is_refused(client: Client, wrong: object) -> None:
    report = problem(client.post("/v1/forward", json=SQUARES | {"precision": wrong}), 422, "invalid_field")
    assert report["pointer"] == "/precision"


def test_differentiate_takes_no_precision(client: Client) -> None:
    payload = {"graph": SQUARES["graph"], "types": [], "precision": "tf32"}
    report = problem(client.post("/v1/differentiate", json=payload), 422, "invalid_field")
    assert report["got"] == "precision"


# ---------------------------------------------------------------- server limits


@pytest.mark.parametrize("call", [*RUNS, "plan"])
def test_precision_below_the_least_is_refused(make_client: Callable[..., Client], call: str) -> None:
    strict, payload = make_client(least_precision="tf32x3"), TYPED if call == "plan" else SQUARES | RUNS[call]
    for beyond in ("tf32", "bfloat16"):
        report = problem(strict.post(f"/v1/{call}", json=payload | {"precision": beyond}), 422, "invalid_field")
        assert report["pointer"] == "/precision"
        assert report["detail"] == f"precision must be one of float32, tf32x3 on this server, but is “{beyond}”"
        assert (report["expected"], report["got"]) == ("one of float32, tf32x3", f"“{beyond}”")
    for within in ("float32", "tf32x3"):
        assert strict.post(f"/v1/{call}", json=payload | {"precision": within}).status_code == 200


def test_server_may_allow_only_float32(make_client: Callable[..., Client]) -> None:
    strict = make_client(least_precision="float32")
    report = problem(strict.post("/v1/forward", json=SQUARES | {"precision": "tf32x3"}), 422, "invalid_field")
    assert report["detail"] == "precision must be float32 on this server, but is “tf32x3”"
    assert strict.post("/v1/forward", json=SQUARES).status_code == 200


def test_least_precision_applies_to_safetensors(make_client: Callable[..., Client]) -> None:
    strict, tensors = make_client(least_precision="tf32"), {"feeds.0": np.array([1.0, 2.0])}
    graph = {"graph": SQUARES["graph"]}
    answer = strict.post("/v1/gradients", content=body(graph | {"precision": "tf32"}, tensors), headers=BINARY)
    assert answer.status_code == 200
    beyond = strict.post("/v1/gradients", content=body(graph | {"precision": "bfloat16"}, tensors), headers=BINARY)
    assert problem(beyond, 422, "invalid_field")["pointer"] == "/precision"


def test_least_precision_applies_to_registered_graphs(make_client: Callable[..., Client]) -> None:
    strict = make_client(least_precision="tf32")
    path = strict.post("/v1/graphs", json={"graph": SQUARES["graph"]}).headers["location"]
    payload = {"feeds": SQUARES["feeds"]}
    assert strict.post(f"{path}/gradients", json=payload | {"precision": "tf32"}).status_code == 200
    problem(strict.post(f"{path}/gradients", json=payload | {"precision": "bfloat16"}), 422, "invalid_field")


def test_precision_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = Settings()
    assert (defaults.precision, defaults.least_precision) == ("float32", "bfloat16")
    monkeypatch.setenv("GRADSERVE_PRECISION", "tf32")
    monkeypatch.setenv("GRADSERVE_LEAST_PRECISION", "tf32")
    assert (Settings().precision, Settings().least_precision) == ("tf32", "tf32")


@pytest.mark.parametrize(("usual", "least"), [(a, b) for i, a in enumerate(PRECISIONS) for b in PRECISIONS[:i]])
def test_default_below_the_least_precision_is_refused(usual: str, least: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        read_settings(precision=usual, least_precision=least)
    assert str(caught.value) == (
        f"--least-precision (GRADSERVE_LEAST_PRECISION) cannot be “{least}”: the default for requests, "
        f"--precision {usual}, is less exact"
    )


@pytest.mark.parametrize(("usual", "least"), [(a, b) for i, a in enumerate(PRECISIONS) for b in PRECISIONS[i:]])
def test_default_within_the_least_precision_is_accepted(usual: str, least: str) -> None:
    assert read_settings(precision=usual, least_precision=least).precision == usual


def test_any_default_is_accepted_without_a_least_precision() -> None:
    assert [read_settings(precision=each).least_precision for each in PRECISIONS] == ["bfloat16"] * 4


# ---------------------------------------------------------------- reported precision


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_stats_report_the_precision_of_every_run(precision: Precision, form: str) -> None:
    worker, (accepted, encoding) = Worker(SETTINGS), FORMS[form]
    for k in range(3):
        payload = loss([1.0, 2.0 + k], precision=precision, encoding=encoding)
        run_stats = stats(worker(job(payload, accepted)))
        assert (run_stats["precision"], run_stats["plan_cached"]) == (precision, k > 0)
        other = stats(worker(job(loss([1.0, 2.0 + k], encoding=encoding), accepted)))
        assert other["precision"] == "float32"


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_default_precision_comes_from_the_settings(precision: Precision) -> None:
    worker = Worker(SETTINGS.model_copy(update={"precision": precision}))
    assert stats(worker(job(loss([1.0, 2.0]))))["precision"] == precision
    assert stats(worker(job(loss([1.0, 2.0], precision="float32"))))["precision"] == "float32"


@pytest.mark.usefixtures("card")
def test_diagnose_reports_the_precision() -> None:
    run_stats = stats(Worker(SETTINGS)(job(loss([1.0, 2.0], precision="tf32", diagnose=True))))
    assert run_stats["precision"] == "tf32"


@pytest.mark.usefixtures("card")
def test_check_always_uses_float64() -> None:
    run_stats = stats(Worker(SETTINGS)(job(loss([1.0, 2.0], precision="tf32"), call="check")))
    assert "precision" not in run_stats
    assert run_stats["dtype"] == "float64"


# ---------------------------------------------------------------- cache keys


def test_different_precisions_use_different_plans() -> None:
    worker = Worker(SETTINGS)
    plans = [cached_request(worker, loss([1.0, 2.0], precision=each)).cached.plan for each in PRECISIONS]
    assert len(set(plans)) == len(PRECISIONS)
    assert cached_request(worker, loss([1.0, 2.0])).cached.plan == plans[0]


def test_idempotency_key_distinguishes_precisions(make_client: Callable[..., Client]) -> None:
    client, headers = make_client(), {"Idempotency-Key": uuid4().hex}
    storing = SQUARES | {"store": [{"node": 2, "tensor_id": "loss"}]}
    payload = storing | {"precision": "tf32"}
    first, again = (client.post("/v1/gradients", json=payload, headers=headers) for _ in range(2))
    assert again.headers["idempotency-replayed"] == "true"
    assert again.content == first.content
    for other in (storing, storing | {"precision": "bfloat16"}):
        report = problem(client.post("/v1/gradients", json=other, headers=headers), 422, "invalid_field")
        assert "Idempotency-Key" in report["detail"]


def test_graph_id_does_not_depend_on_precision(client: Client) -> None:
    all_stats = [
        client.post("/v1/gradients", json=SQUARES | {"precision": each}).json()["stats"] for each in PRECISIONS
    ]
    assert len({each["graph_id"] for each in all_stats}) == 1


# ---------------------------------------------------------------- OpenAPI document


def test_openapi_lists_precisions_once(client: Client) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Precision"]["enum"] == list(PRECISIONS)
    takes = {name for name, schema in schemas.items() if "precision" in schema.get("properties", {})}
    asks = {name for name in takes if name.endswith("Request")}
    assert {name[0].lower() + name[1:].removesuffix("Request") for name in asks} >= {*RUNS, "plan"}
    assert "DifferentiateRequest" not in takes
    for name in takes:
        assert schemas[name]["properties"]["precision"]["$ref"] == "#/components/schemas/Precision"
        assert "precision" not in schemas[name].get("required", ())
