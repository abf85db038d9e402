"""cuDNN plans: which one is chosen, that it is stored and loaded again, and requests without a plan."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from engine.codegen.native.machine_code import KernelStore
from engine.cuda import cudnn_plans
from engine.cuda.autotuning import Choices
from engine.cuda.cudnn_plans import CudnnLibrary, CudnnPlan, CudnnPlans, PlanRequest, packed_strides
from tests.engine.cuda.cudnn_standin import Cudnn, Engine
from tests.engine.cuda.host_clock import HostClock

PLAIN = Engine("plain")
WIDE = Engine("wide", workspace=2000)


def convolution_graph(library: CudnnLibrary) -> Any:
    """A small convolution."""
    graph = library.graph("float32")
    x, kernel = (
        graph.tensor(dim=[1, 1, 3, 3], stride=[9, 9, 3, 1], data_type=library.element("float32"), uid=uid)
        for uid in (1, 2)
    )
    y = graph.conv_fprop(image=x, weight=kernel)
    y.set_output(True).set_data_type(library.element("float32")).set_uid(3).set_dim([1] * 4).set_stride([1] * 4)
    return graph


def request(text: str = "forward of something", *without: str, workspace: int = 1000) -> PlanRequest:
    return PlanRequest(text, convolution_graph, without, workspace)


def plans_by(cudnn: Cudnn, store: KernelStore | None = None, card: str = "sm_90") -> CudnnPlans:
    return CudnnPlans(CudnnLibrary(cudnn, card), store)


def name_of(plan: CudnnPlan | None) -> str | None:
    return None if plan is None else plan.graph.built.name


@pytest.mark.parametrize(
    ("engines", "found", "asked"),
    [
        ({"A": [PLAIN, WIDE], "B": [WIDE], "FALLBACK": [WIDE]}, "plain", "A"),
        ({"A": [WIDE, Engine("broken", builds=False), PLAIN], "B": [Engine("later")]}, "plain", "A"),
        ({"A": [Engine("tensor cores", ("TENSOR_CORE",))], "B": [Engine("second")]}, "second", "AB"),
        ({"A": [], "B": [WIDE], "FALLBACK": [PLAIN]}, "plain", "A B FALLBACK"),
        ({"B": [PLAIN]}, "plain", "AB"),
        ({"A": [Engine("fits", workspace=1000)]}, "fits", "A"),
    ],
)
def test_first_supported_plan_is_used(engines: dict[str, list[Engine]], found: str, asked: str) -> None:
    """Heuristic A comes first, then B, then the fallback."""
    cudnn = Cudnn(**engines)
    plan = plans_by(cudnn).find(request("forward", "TENSOR_CORE"))
    assert name_of(plan) == found
    assert "".join(graph.mode for graph in cudnn.asked) == asked.replace(" ", "")


def test_plan_reports_its_workspace() -> None:
    plan = plans_by(Cudnn(A=[WIDE])).find(request(workspace=2000))
    assert plan is not None
    assert plan.workspace == 2000


def test_plan_is_built_once() -> None:
    cudnn = Cudnn(A=[PLAIN])
    plans = plans_by(cudnn)
    plan = plans.find(request())
    assert plans.find(request()) is plan
    assert len(cudnn.asked) == 1


def test_evicted_plan_is_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cudnn_plans, "_MOST_READY", 1)
    cudnn = Cudnn(A=[PLAIN])
    plans = plans_by(cudnn)
    first = plans.find(request())
    assert plans.find(request("forward of something else"))
    again = plans.find(request())
    assert again is not first
    assert name_of(again) == "plain"
    assert len(cudnn.asked) == 2


def test_plan_is_loaded_by_another_process(tmp_path: Path) -> None:
    plans_by(Cudnn(A=[Engine("chosen", workspace=512)]), KernelStore(tmp_path)).find(request())
    later = Cudnn(A=[PLAIN])
    plan = plans_by(later, KernelStore(tmp_path)).find(request())
    assert plan is not None
    assert (name_of(plan), plan.workspace) == ("chosen", 512)
    assert plan.graph.given == {"handle": "handle 0"}
    assert not later.asked


@pytest.mark.parametrize(
    "other",
    [
        {"request": request("forward of something else")},
        {"request": request("forward of something", "TENSOR_CORE")},
        {"request": request(workspace=1001)},
        {"card": "sm_100"},
        {"version": 92802},
    ],
)
def test_stored_plan_depends_on_card_versions_and_request(tmp_path: Path, other: dict[str, Any]) -> None:
    plans_by(Cudnn(A=[PLAIN]), KernelStore(tmp_path)).find(request())
    cudnn = Cudnn(A=[Engine("other")], version=other.get("version", 92801))
    plans = plans_by(cudnn, KernelStore(tmp_path), other.get("card", "sm_90"))
    assert name_of(plans.find(other.get("request", request()))) == "other"


def test_unloadable_stored_plan_is_built_again(caplog: pytest.LogCaptureFixture) -> None:
    class Spoilt(KernelStore):
        def get(self, key: str) -> bytes | None:
            return b"no plan"

    assert name_of(plans_by(Cudnn(A=[PLAIN]), Spoilt()).find(request())) == "plain"
    assert [record.message for record in caplog.records] == [
        "cuDNN is not used for a plan that was kept: this is no plan"
    ]


@pytest.mark.parametrize(
    ("engines", "fails", "reason"),
    [
        (
            {"A": [WIDE], "B": [], "FALLBACK": [Engine("no", ("FFT",))]},
            "",
            "no engine passes the notes and the workspace",
        ),
        ({}, "", "heuristic A knows nothing"),
        ({"A": [PLAIN]}, "validated", "validated does not work"),
        ({"A": [PLAIN]}, "graph", "graph does not work"),
    ],
)
def test_missing_plan_is_logged_once_per_reason(
    caplog: pytest.LogCaptureFixture, engines: dict[str, list[Engine]], fails: str, reason: str
) -> None:
    cudnn = Cudnn(**engines)
    cudnn.fails = fails
    plans = plans_by(cudnn)
    with caplog.at_level(logging.INFO, "gradserve.kernels"):
        assert [plans.find(request(f"forward {k}", "FFT")) for k in range(3)] == [None] * 3
    assert [record.message for record in caplog.records] == [f"cuDNN is not used for forward: {reason}"]


def test_missing_plan_is_cached() -> None:
    cudnn = Cudnn(A=[WIDE])
    plans = plans_by(cudnn)
    assert plans.find(request()) is None
    before = len(cudnn.asked)
    cudnn.engines["A"] = [PLAIN]
    assert plans.find(request()) is None
    assert len(cudnn.asked) == before


def test_absent_card_loads_no_stored_plan(tmp_path: Path) -> None:
    plans_by(Cudnn(A=[PLAIN]), KernelStore(tmp_path)).find(request())
    cudnn = Cudnn(A=[Engine("planned")])
    plans = CudnnPlans(CudnnLibrary(cudnn, "sm_90", {"device_property": "an H100"}), KernelStore(tmp_path))
    plan = plans.find(request())
    assert plan is not None
    assert name_of(plan) == "planned"
    assert plan.graph.given["device_property"] == "an H100"
    assert "handle" not in plan.graph.given
    assert not cudnn.streams


# ------------------------------------------------------------ the fastest plan

TIMED = request()._replace(sizes=((1, 36), (2, 36), (3, 4)))
FIRST, SLOW, QUICK = (
    Engine("first", milliseconds=2, workspace=64),
    Engine("slow", milliseconds=3),
    Engine("quick", milliseconds=1, workspace=512),
)


def clock_of(cudnn: Cudnn) -> HostClock:
    return HostClock(lambda: cudnn.launched[-1][0].built.milliseconds)  # type: ignore[union-attr]


def fastest_plan(cudnn: Cudnn, store: KernelStore | None = None, timed_request: PlanRequest = TIMED) -> str | None:
    """The plan that a new process chooses."""
    kernel_store = KernelStore() if store is None else store
    return name_of(plans_by(cudnn, kernel_store).find(timed_request, choices=Choices(kernel_store, clock_of(cudnn))))


def test_fastest_supported_plan_is_chosen() -> None:
    others = [Engine("inexact", ("FFT",), milliseconds=0), Engine("wide", workspace=1001, milliseconds=0)]
    cudnn = Cudnn(A=[FIRST, *others, SLOW, QUICK], B=[Engine("later", milliseconds=0)])
    store = KernelStore()
    plans, clock = plans_by(cudnn, store), clock_of(cudnn)
    choices = Choices(store, clock)
    timed_request = TIMED._replace(excluded_notes=("FFT",))
    plan = plans.find(timed_request, choices=choices)
    assert name_of(plan) == "quick"
    assert plan is not None
    assert plan.workspace == 512
    assert clock.sizes == [(36, 36, 4, 512)]
    assert plans.find(timed_request, choices=choices) is plan
    for graph, _, addresses, workspace in cudnn.launched:
        assert sorted(addresses) == [1, 2, 3]
        assert graph.built is not None
        assert bool(workspace) is (graph.built.name != "slow")
    assert name_of(plans.find(timed_request)) == "first"  # without choices, the first one is used


def test_at_most_four_plans_are_timed() -> None:
    cudnn = Cudnn(A=[FIRST, SLOW, SLOW, SLOW, QUICK])
    assert fastest_plan(cudnn) == "first"
    assert {graph.built.name for graph, *_ in cudnn.launched if graph.built} == {"first", "slow"}


def test_another_process_loads_the_fastest_plan_untimed(tmp_path: Path) -> None:
    fastest_plan(Cudnn(A=[FIRST, QUICK]), KernelStore(tmp_path))
    later = Cudnn(A=[FIRST, SLOW])
    assert fastest_plan(later, KernelStore(tmp_path)) == "quick"
    assert not later.launched
    assert not later.asked
    other = Cudnn(A=[FIRST, SLOW], version=92802)
    assert fastest_plan(other, KernelStore(tmp_path)) == "first"
    assert other.launched


def test_unloadable_choice_is_ignored() -> None:
    class Spoilt(KernelStore):
        def get(self, key: str) -> bytes | None:
            entry = super().get(key)
            return None if entry is None else b"no plan"

    store, cudnn = Spoilt(), Cudnn(A=[FIRST, QUICK])
    assert fastest_plan(cudnn, store) == "quick"
    assert fastest_plan(cudnn, store) == "first"


def test_request_without_sizes_is_not_timed() -> None:
    cudnn = Cudnn(A=[FIRST, QUICK])
    assert fastest_plan(cudnn, timed_request=request()) == "first"
    assert not cudnn.launched


def test_request_without_a_plan_is_not_timed() -> None:
    cudnn = Cudnn(A=[Engine("no", builds=False)])
    assert fastest_plan(cudnn) is None
    assert len(cudnn.asked) == 3  # each of its heuristics once


def test_packed_strides() -> None:
    assert packed_strides((2, 3, 4)) == [12, 4, 1]
    assert packed_strides(()) == []
