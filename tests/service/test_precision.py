"""`precision`: what it may be, that its plans are its own, what a server allows, and what is told of a run."""

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
from schemas.request import Precision as Spoken
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
    """Runs tell what a card would that multiplies as coarsely as it may."""
    execute = Executor.execute

    def told(
        executor: Executor,
        plan: Plan,
        feeds: Mapping[Hashable, Any],
        deadline: Deadline = NO_DEADLINE,
        watch: Observer | None = None,
    ) -> list[Any]:
        found = execute(executor, plan, feeds, deadline, watch)
        deadline.record_precision(plan.precision)
        return found

    monkeypatch.setattr(Executor, "execute", told)


def loss(values: list[float], **more: Any) -> Json:
    """The logarithm of x · x, by a product."""
    nodes = [node("parameter"), node("matmul", 0, 0), node("log", 1)]
    return request(*nodes, feeds=[feed(0, [len(values)], values)], **more)


def job(asked: Json, accepted: str = JSON, call: str = "gradients") -> Task:
    return Task(call, json.dumps(asked).encode(), "id", 60.0, time.monotonic() + 60.0, JSON, accepted)


def stats(reply: Reply) -> Json:
    assert reply.status == 200, reply.body
    answer = unpacked(reply.body)[0] if reply.media_type == SAFETENSORS else json.loads(reply.body)
    found: Json = answer["stats"]
    return found


def known(worker: Worker, asked: Json) -> CacheHit:
    """What is left of a request that has come before."""
    assert worker(job(asked)).status == 200
    found = worker._read_request(TaskContext(job(asked), None))
    assert isinstance(found, CacheHit)
    return found


# ---------------------------------------------------------------- what it may be


def test_the_engine_and_the_wire_have_the_same() -> None:
    assert get_args(Spoken.__value__) == PRECISIONS


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("call", RUNS)
def test_every_call_that_runs_takes_it_and_a_processor_computes_float32(
    client: Client, call: str, precision: str
) -> None:
    answer = client.post(f"/v1/{call}", json=SQUARES | RUNS[call] | {"precision": precision})
    assert answer.status_code == 200, answer.text
    assert answer.json()["stats"]["precision"] == "float32"


@pytest.mark.parametrize("precision", PRECISIONS)
def test_plan_takes_it_and_says_the_same(client: Client, precision: str) -> None:
    answer = client.post("/v1/plan", json=TYPED | {"precision": precision})
    assert answer.status_code == 200, answer.text
    assert answer.json() == client.post("/v1/plan", json=TYPED).json()


@pytest.mark.parametrize("call", [*RUNS, "plan"])
def test_it_is_one_of_four(client: Client, call: str) -> None:
    asked = TYPED if call == "plan" else SQUARES | RUNS[call]
    report = problem(client.post(f"/v1/{call}", json=asked | {"precision": "float16"}), 422, "invalid_field")
    assert report["pointer"] == "/precision"
    assert report["detail"] == "precision must be one of float32, tf32x3, tf32, bfloat16, but is “float16”"
    assert (report["expected"], report["got"]) == ("one of float32, tf32x3, tf32, bfloat16", "“float16”")


@pytest.mark.parametrize("wrong", [None, 1, True, ["tf32"], {}, "", "TF32", "highest", "tf32 "])
def test_nothing_else_is_taken(client: Client, wrong: object) -> None:
    report = problem(client.post("/v1/forward", json=SQUARES | {"precision": wrong}), 422, "invalid_field")
    assert report["pointer"] == "/precision"


def test_what_computes_nothing_has_none(client: Client) -> None:
    asked = {"graph": SQUARES["graph"], "types": [], "precision": "tf32"}
    report = problem(client.post("/v1/differentiate", json=asked), 422, "invalid_field")
    assert report["got"] == "precision"


# ---------------------------------------------------------------- what a server allows


@pytest.mark.parametrize("call", [*RUNS, "plan"])
def test_what_is_beyond_the_least_is_refused(make_client: Callable[..., Client], call: str) -> None:
    strict, asked = make_client(least_precision="tf32x3"), TYPED if call == "plan" else SQUARES | RUNS[call]
    for beyond in ("tf32", "bfloat16"):
        report = problem(strict.post(f"/v1/{call}", json=asked | {"precision": beyond}), 422, "invalid_field")
        assert report["pointer"] == "/precision"
        assert report["detail"] == f"precision must be one of float32, tf32x3 on this server, but is “{beyond}”"
        assert (report["expected"], report["got"]) == ("one of float32, tf32x3", f"“{beyond}”")
    for within in ("float32", "tf32x3"):
        assert strict.post(f"/v1/{call}", json=asked | {"precision": within}).status_code == 200


def test_a_server_may_allow_nothing_but_float32(make_client: Callable[..., Client]) -> None:
    strict = make_client(least_precision="float32")
    report = problem(strict.post("/v1/forward", json=SQUARES | {"precision": "tf32x3"}), 422, "invalid_field")
    assert report["detail"] == "precision must be float32 on this server, but is “tf32x3”"
    assert strict.post("/v1/forward", json=SQUARES).status_code == 200


def test_safetensors_ask_and_are_refused_as_well(make_client: Callable[..., Client]) -> None:
    strict, tensors = make_client(least_precision="tf32"), {"feeds.0": np.array([1.0, 2.0])}
    graph = {"graph": SQUARES["graph"]}
    answer = strict.post("/v1/gradients", content=body(graph | {"precision": "tf32"}, tensors), headers=BINARY)
    assert unpacked(answer.content)[0]["stats"]["precision"] == "float32"
    beyond = strict.post("/v1/gradients", content=body(graph | {"precision": "bfloat16"}, tensors), headers=BINARY)
    assert problem(beyond, 422, "invalid_field")["pointer"] == "/precision"


def test_graphs_that_are_registered_are_asked_for_with_it(make_client: Callable[..., Client]) -> None:
    strict = make_client(least_precision="tf32")
    path = strict.post("/v1/graphs", json={"graph": SQUARES["graph"]}).headers["location"]
    asked = {"feeds": SQUARES["feeds"]}
    assert strict.post(f"{path}/gradients", json=asked | {"precision": "tf32"}).status_code == 200
    problem(strict.post(f"{path}/gradients", json=asked | {"precision": "bfloat16"}), 422, "invalid_field")


def test_settings_have_a_default_and_a_least(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Settings()
    assert (usual.precision, usual.least_precision) == ("float32", "bfloat16")
    monkeypatch.setenv("GRADSERVE_PRECISION", "tf32")
    monkeypatch.setenv("GRADSERVE_LEAST_PRECISION", "tf32")
    assert (Settings().precision, Settings().least_precision) == ("tf32", "tf32")


@pytest.mark.parametrize(("usual", "least"), [(a, b) for i, a in enumerate(PRECISIONS) for b in PRECISIONS[:i]])
def test_a_server_whose_default_is_beyond_its_least_does_not_start(usual: str, least: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        read_settings(precision=usual, least_precision=least)
    assert str(caught.value) == (
        f"setting --least-precision (GRADSERVE_LEAST_PRECISION) is '{least}': the precision of requests that ask for "
        f"none, --precision {usual}, is less exact"
    )


@pytest.mark.parametrize(("usual", "least"), [(a, b) for i, a in enumerate(PRECISIONS) for b in PRECISIONS[i:]])
def test_all_others_may(usual: str, least: str) -> None:
    assert read_settings(precision=usual, least_precision=least).precision == usual


def test_a_default_alone_may_be_any() -> None:
    assert [read_settings(precision=each).least_precision for each in PRECISIONS] == ["bfloat16"] * 4


# ---------------------------------------------------------------- what is told of a run


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_stats_have_what_was_used_the_first_time_and_later(precision: Precision, form: str) -> None:
    worker, (accepted, encoding) = Worker(SETTINGS), FORMS[form]
    for k in range(3):
        asked = loss([1.0, 2.0 + k], precision=precision, encoding=encoding)
        found = stats(worker(job(asked, accepted)))
        assert (found["precision"], found["plan_cached"]) == (precision, k > 0)
        other = stats(worker(job(loss([1.0, 2.0 + k], encoding=encoding), accepted)))
        assert other["precision"] == "float32"


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_without_one_a_request_has_the_servers(precision: Precision) -> None:
    worker = Worker(SETTINGS.model_copy(update={"precision": precision}))
    assert stats(worker(job(loss([1.0, 2.0]))))["precision"] == precision
    assert stats(worker(job(loss([1.0, 2.0], precision="float32"))))["precision"] == "float32"


@pytest.mark.usefixtures("card")
def test_who_looks_on_is_told_too() -> None:
    found = stats(Worker(SETTINGS)(job(loss([1.0, 2.0], precision="tf32", diagnose=True))))
    assert found["precision"] == "tf32"


@pytest.mark.usefixtures("card")
def test_certificates_are_of_float64_whatever_was_asked() -> None:
    found = stats(Worker(SETTINGS)(job(loss([1.0, 2.0], precision="tf32"), call="check")))
    assert (found["precision"], found["dtype"]) == ("float32", "float64")


# ---------------------------------------------------------------- what it is part of


def test_requests_of_different_precision_share_no_plan() -> None:
    worker = Worker(SETTINGS)
    plans = [known(worker, loss([1.0, 2.0], precision=each)).cached.plan for each in PRECISIONS]
    assert len(set(plans)) == len(PRECISIONS)
    assert known(worker, loss([1.0, 2.0])).cached.plan == plans[0]


def test_under_the_key_of_a_call_another_precision_is_another_request(make_client: Callable[..., Client]) -> None:
    client, headers = make_client(), {"Idempotency-Key": uuid4().hex}
    keeping = SQUARES | {"store": [{"node": 2, "tensor_id": "loss"}]}
    asked = keeping | {"precision": "tf32"}
    first, again = (client.post("/v1/gradients", json=asked, headers=headers) for _ in range(2))
    assert again.headers["idempotency-replayed"] == "true"
    assert again.content == first.content
    for other in (keeping, keeping | {"precision": "bfloat16"}):
        report = problem(client.post("/v1/gradients", json=other, headers=headers), 422, "invalid_field")
        assert "Idempotency-Key" in report["detail"]


def test_a_graph_has_the_same_id_in_all(client: Client) -> None:
    found = [client.post("/v1/gradients", json=SQUARES | {"precision": each}).json()["stats"] for each in PRECISIONS]
    assert len({each["graph_id"] for each in found}) == 1


# ---------------------------------------------------------------- the document


def test_the_document_lists_them_once(client: Client) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert schemas["Precision"]["enum"] == list(PRECISIONS)
    takes = {name for name, schema in schemas.items() if "precision" in schema.get("properties", {})}
    asks = {name for name in takes if name.endswith("Request")}
    assert {name[0].lower() + name[1:].removesuffix("Request") for name in asks} >= {*RUNS, "plan"}
    assert "DifferentiateRequest" not in takes
    for name in takes:
        assert schemas[name]["properties"]["precision"]["$ref"] == "#/components/schemas/Precision"
        assert ("precision" in schemas[name].get("required", ())) == (name == "Stats")
