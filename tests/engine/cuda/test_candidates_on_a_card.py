"""Autotuned library algorithms in plans, on the stand-in card: timed once under `fast`, and then stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, Plan, TensorType, registry
from engine.codegen.native.machine_code import KernelStore
from engine.compiler.plan import make_plan
from engine.cuda import autotuning as cuda_clock
from engine.cuda import binding as cuda_recipes
from engine.cuda.autotuning import CudaClock
from engine.cuda.cudnn_plans import CudnnLibrary
from engine.cuda.cupy_backend import CuPyExecutor
from engine.ir.errors import MissingFeed
from engine.runtime.numpy_backend import NumPyExecutor
from tests.engine.cuda.card_memory import CARD
from tests.engine.cuda.cublaslt_stand_in import CublasLtStandIn
from tests.engine.cuda.cudnn_standin import Cudnn, Engine
from tests.engine.cuda.stand_in_card import StandInCard
from tests.engine.runtime.kernel_plans import warnings

Array = np.ndarray[Any, Any]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).integers(-4, 5, shape).astype("float32")


def products() -> tuple[Plan, dict[Any, Array]]:
    """Two products: one of fed operands, and one that reads the arena."""
    x = Builder(registry()).leaf(TensorType((6, 6), np.dtype("float32")), 0)
    return make_plan(x.builder.graph([(x @ x.transpose()) @ x]), Limits()), {0: numbers(6, 6)}


def run_until_compiled(plan: Plan, feeds: Any, **settings: Any) -> tuple[CuPyExecutor, list[Array]]:
    """An executor that has compiled the plan, and its results from then on."""
    executor = CuPyExecutor(**{"compile": "on", **settings})
    for _ in range(2):
        executor.run(plan, feeds)
    executor.settle()
    return executor, executor.run(plan, feeds)


def algorithms(library: CublasLtStandIn, executor: CuPyExecutor, plan: Plan, feeds: Any) -> list[int]:
    """The algorithms that one more run launches."""
    library.calls.clear()
    executor.run(plan, feeds)
    return [call.algorithm for call in library.calls]


def timed_algorithms(library: CublasLtStandIn) -> set[int]:
    """The algorithms launched on the clock's stream; captured graphs are launched on the stream of runs."""
    return {call.algorithm for call in library.calls if CARD.by_pointer[call.stream].events}


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_clock, "_PATIENCE_SECONDS", 0)


@pytest.fixture
def library(stand_in: StandInCard) -> CublasLtStandIn:
    """cuBLASLt whose third algorithm is the fastest of the four that are requested."""
    stand_in.cublaslt.milliseconds = (3.0, 2.0, 1.0, 4.0, 0.5)
    return stand_in.cublaslt


def test_compiled_plan_uses_the_fastest_algorithm(library: CublasLtStandIn) -> None:
    plan, feeds = products()
    first = CuPyExecutor(compile="on").run(plan, feeds)
    assert [call.algorithm for call in library.calls] == [0, 0]
    executor, results = run_until_compiled(plan, feeds)
    assert timed_algorithms(library) == {0, 1, 2, 3}
    assert algorithms(library, executor, plan, feeds) == [2, 2]
    np.testing.assert_array_equal(results[0], first[0])
    np.testing.assert_array_equal(results[0], NumPyExecutor().run(plan, feeds)[0])


def test_second_process_reuses_stored_timings(library: CublasLtStandIn, tmp_path: Path) -> None:
    plan, feeds = products()
    run_until_compiled(plan, feeds, store=KernelStore(tmp_path))
    library.calls.clear()
    executor, _ = run_until_compiled(plan, feeds, store=KernelStore(tmp_path))
    assert not timed_algorithms(library)
    assert algorithms(library, executor, plan, feeds) == [2, 2]


def test_second_plan_of_the_same_shape_is_not_timed(library: CublasLtStandIn) -> None:
    plan, feeds = products()
    executor, _ = run_until_compiled(plan, feeds)
    library.calls.clear()
    other, _ = products()
    for _ in range(2):
        executor.run(other, feeds)
    executor.settle()
    assert not timed_algorithms(library)
    assert algorithms(library, executor, other, feeds) == [2, 2]


@pytest.mark.parametrize("settings", [{"determinism": "bitwise"}, {"compile": "off"}])
def test_bitwise_or_uncompiled_plans_ignore_autotuning(library: CublasLtStandIn, settings: dict[str, Any]) -> None:
    plan, feeds = products()
    store = KernelStore()
    run_until_compiled(plan, feeds, store=store)
    library.calls.clear()
    executor, _ = run_until_compiled(plan, feeds, store=store, **settings)
    assert {call.algorithm for call in library.calls} == {0}
    assert not timed_algorithms(library)
    assert algorithms(library, executor, plan, feeds) == [0, 0]


def test_compiled_plan_never_changes_its_algorithms(library: CublasLtStandIn) -> None:
    """Its results stay bit-identical even after another plan has chosen other algorithms."""
    plan, feeds = products()
    disturbs = [True]

    executor, _ = run_disturbed(plan, feeds, lambda executor: begin_one(executor) if disturbs[0] else None)
    assert algorithms(library, executor, plan, feeds) == [0, 0]
    disturbs[0] = False
    other, _ = products()
    for _ in range(2):
        executor.run(other, feeds)
    executor.settle()
    assert algorithms(library, executor, other, feeds) == [2, 2]
    held = [executor.to_device(numbers(6, 6)) for _ in range(8)]
    library.calls.clear()
    for each in held:
        executor.execute(plan, {0: each})
    assert {call.algorithm for call in library.calls} == {0}


# ------------------------------------------------------------ concurrent runs


def begin_one(executor: CuPyExecutor) -> None:
    """Begin a run that ends at once."""
    with executor._runs:
        pass


@pytest.mark.usefixtures("stand_in")
def test_runs_are_counted_until_they_end() -> None:
    plan, feeds = products()
    executor = CuPyExecutor()
    counts: list[int | None] = []
    for watch in (None, lambda *_: counts.append(executor._runs.wait_until_idle(0))):
        before = executor._runs.started
        executor.run(plan, feeds, watch=watch)
        assert executor._runs.started > before
    assert counts == [None] * len(plan.steps)
    with pytest.raises(MissingFeed):
        executor.run(plan, {})
    assert executor._runs.wait_until_idle(0) == executor._runs.started


def run_disturbed(
    plan: Plan, feeds: Any, interrupt: Callable[[CuPyExecutor], None], **settings: Any
) -> tuple[CuPyExecutor, list[Array]]:
    """Like `run_until_compiled`, with an interruption of each timing."""
    executor = CuPyExecutor(compile="on", **settings)
    seconds = CudaClock.seconds

    def disturbed(clock: CudaClock, launch: Callable[[int], object]) -> float | None:
        def launch_interrupted(stream: int) -> None:
            launch(stream)
            interrupt(executor)

        return seconds(clock, launch_interrupted)

    executor._clock.seconds = disturbed.__get__(executor._clock)  # type: ignore[method-assign]
    for _ in range(2):
        executor.run(plan, feeds)
    executor.settle()
    return executor, executor.run(plan, feeds)


@pytest.mark.usefixtures("stand_in")
def test_run_waits_for_the_memory_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, feeds = products()
    executor = CuPyExecutor()
    held = [CARD.pool.malloc(1 << 19)]
    CARD.pool.set_limit(CARD.pool.total_bytes())
    monkeypatch.setattr(executor._clock, "await_memory", held.clear)
    np.testing.assert_array_equal(executor.run(plan, feeds)[0], NumPyExecutor().run(plan, feeds)[0])
    assert not held


def test_timings_interrupted_by_runs_store_no_choice(library: CublasLtStandIn) -> None:
    plan, feeds = products()
    store = KernelStore()
    executor, _ = run_disturbed(plan, feeds, begin_one, store=store)
    assert algorithms(library, executor, plan, feeds) == [0, 0]
    assert timed_algorithms(library) <= {0}  # the run was noticed after the first timing
    library.calls.clear()
    executor, _ = run_until_compiled(plan, feeds, store=store)
    assert timed_algorithms(library) == {0, 1, 2, 3}
    assert algorithms(library, executor, plan, feeds) == [2, 2]


def test_timing_interrupted_by_a_run_is_repeated(library: CublasLtStandIn) -> None:
    """A concurrent run distorts a timing, so that timing does not count."""
    plan, feeds = products()
    count = [0]

    def interrupt(executor: CuPyExecutor) -> None:
        count[0] += 1
        if count[0] % 7 == 0:
            with executor._runs:
                CARD.milliseconds -= 0.9  # as if it were the quickest

    executor, _ = run_disturbed(plan, feeds, interrupt)
    assert count[0] > 2 * 4 * 6
    assert algorithms(library, executor, plan, feeds) == [2, 2]


# ------------------------------------------------------------ refusals


def test_refused_algorithm_is_not_chosen(library: CublasLtStandIn) -> None:
    library.refuses = (2,)
    plan, feeds = products()
    executor, results = run_until_compiled(plan, feeds)
    assert algorithms(library, executor, plan, feeds) == [1, 1]
    np.testing.assert_array_equal(results[0], NumPyExecutor().run(plan, feeds)[0])


def test_stored_algorithm_no_longer_proposed_is_ignored(library: CublasLtStandIn) -> None:
    plan, feeds = products()
    store = KernelStore()
    run_until_compiled(plan, feeds, store=store)
    library.milliseconds = (3.0, 2.0)
    executor, _ = run_until_compiled(plan, feeds, store=store)
    assert algorithms(library, executor, plan, feeds) == [0, 0]


def test_new_library_version_is_timed_again(library: CublasLtStandIn) -> None:
    plan, feeds = products()
    store = KernelStore()
    run_until_compiled(plan, feeds, store=store)
    library.version += 1
    library.milliseconds = (3.0, 1.0, 2.0)
    executor, _ = run_until_compiled(plan, feeds, store=store)
    assert algorithms(library, executor, plan, feeds) == [1, 1]


def test_without_spare_memory_the_default_is_used(library: CublasLtStandIn) -> None:
    library.wants = 4096
    plan, feeds = products()
    held = CARD.pool.malloc(1 << 19)
    before = CARD.pool.total_bytes()
    executor, _ = run_until_compiled(plan, feeds, device_bytes=before + (1 << 18), device_workspace=1 << 16)
    assert algorithms(library, executor, plan, feeds) == [2, 2]
    library.calls.clear()
    executor, _ = run_until_compiled(
        plan, feeds, device_bytes=CARD.pool.total_bytes() + (1 << 17), device_workspace=1 << 16
    )
    assert not timed_algorithms(library)
    assert algorithms(library, executor, plan, feeds) == [0, 0]
    del held


# ------------------------------------------------------------ cuDNN


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(("determinism", "found"), [("fast", "quick"), ("bitwise", "first")])
def test_fastest_cudnn_plan_is_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, determinism: Any, found: str
) -> None:
    """Only plans of the requested precision take part, in the order of the heuristics."""
    inexact = Engine("inexact", ("WINOGRAD",), milliseconds=0.1)
    cudnn = Cudnn(
        computes=True,
        A=[Engine("first", milliseconds=3), inexact, Engine("slow", milliseconds=4), Engine("quick", milliseconds=1)],
    )
    cudnn.launch = on_card
    monkeypatch.setattr(cuda_recipes, "cudnn_library", lambda card: CudnnLibrary(cudnn, card))
    builder = Builder(registry())
    x, kernel = (
        builder.leaf(TensorType(s, np.dtype("float32")), k) for k, s in enumerate([(1, 2, 5, 5), (3, 2, 2, 2)])
    )
    plan = make_plan(builder.graph([x.conv2d(kernel)]), Limits())
    feeds = {0: numbers(1, 2, 5, 5), 1: numbers(3, 2, 2, 2)}
    executor, answered = run_until_compiled(plan, feeds, determinism=determinism)
    np.testing.assert_array_equal(answered[0], NumPyExecutor().run(plan, feeds)[0])
    executor.run(plan, feeds)
    assert cudnn.launched[-1][0].built.name == found  # type: ignore[union-attr]
    assert ("slow" in {graph.built.name for graph, *_ in cudnn.launched if graph.built}) is (determinism == "fast")
    assert "inexact" not in {graph.built.name for graph, *_ in cudnn.launched if graph.built}
    assert not warnings(caplog)


def on_card(stream: int, milliseconds: float, work: Callable[[], None]) -> None:
    """Launch work on a stream of the stand-in."""

    def timed() -> None:
        CARD.milliseconds += milliseconds
        work()

    CARD.by_pointer[stream].launch(timed)
