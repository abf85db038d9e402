"""`stats.tier`: how much of an answer compiled kernels have computed, in every form of answer."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, get_args

import pytest

from engine.ir.run_report import RunTier
from engine.runtime import tiers
from schemas.answer import Tier
from service.api.media import JSON, SAFETENSORS
from service.core.settings import Settings
from service.workers.task import Reply, Task
from service.workers.worker import Worker
from tests.engine.runtime.stepped import SteppedCompiler
from tests.service.api.safetensors_support import unpacked
from tests.service.support import Json, feed, node, request

pytest.importorskip("llvmlite")
FUNCTIONS = ("tanh", "sin", "cos", "exp", "sqrt", "log1p", "expm1", "erf", "square", "sigmoid", "softplus", "atan")
#: number of elements of an answer that is written as a whole each time
LARGE = 20_000
FORMS: dict[str, tuple[int, str, Json]] = {
    "json": (5, JSON, {}),
    "much json": (LARGE, JSON, {}),
    "base64": (5, JSON, {"encoding": "base64"}),
    "safetensors": (5, SAFETENSORS, {}),
}
ALL = ["uncompiled", "partly_compiled", "compiled"]
SQUARE = [node("parameter"), node("mul", 0, 0), node("exp", 1), node("matmul", 2, 2), node("log", 3)]


def body(count: int, **more: Any) -> Json:
    """A kernel for each function, with a cumulative sum between any two; the value and its gradient."""
    nodes = [node("parameter")]
    for name in FUNCTIONS:
        last = len(nodes) - 1
        nodes += [node(name, last), node("mul_scalar", last + 1, scalar=0.01), node("cumsum", last + 2, axis=0)]
    nodes.append(node("sum", len(nodes) - 1))
    return request(*nodes, feeds=[feed(0, [count], [0.5] * count)], **more)


def job(payload: Json, accepted: str = JSON, call: str = "gradients") -> Task:
    return Task(call, json.dumps(payload).encode(), "id", 600.0, time.monotonic() + 600.0, JSON, accepted)


def tier(reply: Reply) -> str:
    """The tier that an answer reports."""
    assert reply.status == 200, reply.body
    answer = unpacked(reply.body)[0] if reply.media_type == SAFETENSORS else json.loads(reply.body)
    reported: str = answer["stats"]["tier"]
    return reported


def worker(**settings: Any) -> Worker:
    return Worker(Settings(device="cpu", workers=1, **settings))


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> SteppedCompiler:
    """A compiler whose queue the test steps through."""
    queue = SteppedCompiler()
    monkeypatch.setattr(tiers, "BackgroundCompiler", lambda: queue)
    return queue


def test_schema_and_engine_have_the_same_tiers() -> None:
    assert get_args(Tier) == get_args(RunTier)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_answer_reports_its_tier(form: str, stepped: SteppedCompiler) -> None:
    count, accepted, more = FORMS[form]
    instance, task = worker(), job(body(count, **more), accepted)
    reported_tiers = []
    for _ in ALL:
        reported_tiers += [tier(instance(task)) for _ in range(3)]
        if stepped.waiting:
            stepped.step()
    assert reported_tiers == [each for each in ALL for _ in range(3)]
    assert stepped.waiting == []


def test_diagnose_is_not_compiled(stepped: SteppedCompiler) -> None:
    instance = worker()
    for _ in range(3):
        instance(job(body(5)))
        while stepped.waiting:
            stepped.step()
    assert tier(instance(job(body(5, diagnose=True)))) == "uncompiled"
    assert tier(instance(job(body(5)))) == "compiled"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"compile": "off"}, "uncompiled"),
        ({"compile": "off", "determinism": "bitwise"}, "uncompiled"),
        ({"determinism": "bitwise"}, "uncompiled"),
    ],
)
def test_tier_stays_uncompiled_without_compilation(settings: Json, expected: str) -> None:
    instance = worker(**settings)
    for _ in range(4):
        assert tier(instance(job(body(5)))) == expected
        instance._executor.settle()


def test_bitwise_compiles_large_graphs_for_the_first_answer() -> None:
    """The arrays are large enough for kernels to pay off at once."""
    nodes = [node("input"), node("broadcast_to", 0, shape=[1 << 21]), node("cumsum", 1, axis=0)]
    nodes += [node("exp", 2), node("sin", 3), node("sum", 4)]
    instance = worker(determinism="bitwise")
    task = job(request(*nodes, feeds=[feed(0, [1], [1e-7])]), call="forward")
    assert [tier(instance(task)) for _ in range(3)] == ["compiled"] * 3


@pytest.mark.slow
def test_stored_kernels_are_used_after_a_restart(tmp_path: Path, stepped: SteppedCompiler) -> None:
    for expected in (ALL, ["uncompiled", "compiled"]):
        instance, reported_tiers = worker(cache_dir=tmp_path), []
        for _ in expected:
            reported_tiers += [tier(instance(job(body(5)))) for _ in range(2)]
            if stepped.waiting:
                stepped.step()
        assert reported_tiers == [each for each in expected for _ in range(2)]
        assert stepped.waiting == []


def test_check_reports_its_tier() -> None:
    assert tier(worker()(job(request(*SQUARE, feeds=[feed(0, [8], [0.1] * 8)]), call="check"))) == "uncompiled"
