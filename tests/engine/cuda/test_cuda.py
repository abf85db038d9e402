"""Plans on a card or its stand-in: bound to memory, fused, captured as graphs, and checked for bad indices."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Builder, Limits, Plan, TensorType, Value, registry
from engine.codegen.native.machine_code import KernelStore
from engine.compiler.plan import make_plan
from engine.cuda.cupy_backend import CuPyExecutor
from engine.ir.errors import IndexOutOfRange
from engine.runtime.numpy_backend import NumPyExecutor
from tests.engine.runtime.kernel_plans import FEED, layers

pytestmark = pytest.mark.usefixtures("card")

Array = np.ndarray[Any, Any]
FLOATS = TensorType((6, 40), np.dtype("float32"))


def plan_of(*outputs: Value) -> Plan:
    return make_plan(outputs[0].builder.graph(outputs), Limits())


def rows_of_a_table() -> Plan:
    """Rows of a table gathered by an index, and their sum."""
    builder = Builder(registry())
    table = builder.leaf(TensorType((5, 3), np.dtype("float64")), 0)
    index = builder.leaf(TensorType((4,), np.dtype("int64")), 1)
    picked = table.gather(index.reshape(shape=(4, 1)).broadcast_to(shape=(4, 3)), axis=0)
    return plan_of(picked * 2.0, picked.sum())


def settled(plan: Plan, feeds: dict[Any, Array], store: KernelStore | None = None) -> CuPyExecutor:
    """An executor that runs this plan by compiled kernels in captured graphs."""
    executor = CuPyExecutor("fast", store, compile="on")
    for _ in range(2):
        executor.run(plan, feeds)
    executor.settle()
    for _ in range(3):
        executor.run(plan, feeds)
    return executor


def bound_of(executor: CuPyExecutor, plan: Plan) -> Any:
    """The prepared plan that runs."""
    assert executor._tiers is not None
    return executor.instances.lend(executor._tiers.current(plan).plan)


def assert_close(actual: list[Array], plan: Plan, feeds: dict[Any, Array]) -> None:
    for one, other in zip(actual, NumPyExecutor().interpret(plan, feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_results_are_the_same_before_and_after_capture() -> None:
    plan, executor = layers(), CuPyExecutor()
    runs = [executor.run(plan, FEED) for _ in range(4)]
    assert_close(runs[0], plan, FEED)
    for later in runs[1:]:
        for one, other in zip(later, runs[0], strict=True):
            np.testing.assert_array_equal(one, other)


def test_plan_is_compiled_to_kernels() -> None:
    plan = layers()
    executor = settled(plan, FEED)
    assert executor.kernels > 0
    assert_close(executor.run(plan, FEED), plan, FEED)


def test_plan_is_captured_as_one_segment() -> None:
    plan = layers()
    bound = bound_of(settled(plan, FEED), plan)
    (segment,) = bound._variants[-1].segments
    assert sum(call.step.op.name == "matmul" for call in segment._calls)
    assert segment.launches == 1


def test_new_feeds_give_new_results() -> None:
    plan = layers()
    executor = settled(plan, FEED)
    held = []
    for k in range(1, 20):
        feeds = {0: FEED[0] * (k / 10)}
        device_feeds = {0: executor.to_device(feeds[0])}
        held.append(device_feeds)
        assert_close(executor.to_host(executor.execute(plan, device_feeds)), plan, feeds)


def test_held_results_are_not_overwritten() -> None:
    plan = layers()
    executor = settled(plan, FEED)
    held, expected = [], []
    for k in range(1, 6):
        feeds = {0: FEED[0] * (k / 10)}
        held.append(executor.execute(plan, {0: executor.to_device(feeds[0])}))
        expected.append(NumPyExecutor().interpret(plan, feeds))
    for results, references in zip(held, expected, strict=True):
        for one, other in zip(executor.to_host(results), references, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_result_may_be_a_view_of_a_feed() -> None:
    x = Builder(registry()).leaf(FLOATS, 0)
    plan = plan_of(x.reshape(shape=(240,)), x * 2.0)
    executor = settled(plan, FEED)
    same, twice = executor.run(plan, FEED)
    np.testing.assert_array_equal(same, FEED[0].reshape(-1))
    np.testing.assert_array_equal(twice, FEED[0] * 2)


def test_out_of_range_argument_falls_back() -> None:
    x = Builder(registry()).leaf(FLOATS, 0)
    plan = plan_of((x * 2.0).sin() + x, x.cos().sum())
    executor = settled(plan, FEED)
    far = {0: FEED[0] * np.float32(1e9)}
    for feeds in (far, FEED, far):
        assert_close(executor.run(plan, feeds), plan, feeds)


@pytest.mark.parametrize("wrong", [-1, 5, 2**40])
def test_out_of_range_index_is_reported_after_the_run(wrong: int) -> None:
    plan, table = rows_of_a_table(), np.arange(15.0).reshape(5, 3)
    right = {0: table, 1: np.array([0, 4, 2, 2])}
    executor = settled(plan, right)
    for feeds in ({0: table, 1: np.array([0, 4, wrong, 2])},) * 2:
        with pytest.raises(IndexOutOfRange) as caught:
            executor.run(plan, feeds)
        with pytest.raises(IndexOutOfRange) as on_the_cpu:
            NumPyExecutor().run(plan, feeds)
        assert (caught.value.detail, caught.value.operand) == (on_the_cpu.value.detail, on_the_cpu.value.operand)
    assert_close(executor.run(plan, right), plan, right)


def test_out_of_range_index_is_reported_in_the_first_run() -> None:
    plan = rows_of_a_table()
    with pytest.raises(IndexOutOfRange):
        CuPyExecutor().run(plan, {0: np.zeros((5, 3)), 1: np.array([0, 0, 0, 5])})


def test_synchronizing_ops_are_not_captured() -> None:
    x = Builder(registry()).leaf(TensorType((5, 5), np.dtype("float64")), 0)
    plan = plan_of((x.inv() @ x).exp(), x.sort(axis=1).sum())
    feeds = {0: np.eye(5) * 3 + 0.1}
    executor = settled(plan, feeds)
    for factor in (1.0, 2.0):
        assert_close(executor.run(plan, {0: feeds[0] * factor}), plan, {0: feeds[0] * factor})


def test_compiled_kernels_are_loaded_from_the_store(tmp_path: Path) -> None:
    plan = layers()
    settled(plan, FEED, KernelStore(tmp_path))
    from engine.cuda import compilers as cuda_compiling

    with pytest.MonkeyPatch.context() as patch:
        for compiler in ("compile_cuda", "card_code"):
            patch.setattr(cuda_compiling, compiler, lambda *_, **__: pytest.fail("it was compiled"))
        again = settled(layers(), FEED, KernelStore(tmp_path))
    assert again.kernels > 0


@pytest.mark.parametrize("determinism", ["fast", "bitwise"])
def test_plan_is_right_under_each_determinism(determinism: Any) -> None:
    plan, executor = layers(fused=True), CuPyExecutor(determinism, compile="on")
    for _ in range(3):
        assert_close(executor.run(plan, FEED), plan, FEED)
    assert executor.close()


def test_full_card_raises_memory_error() -> None:
    x = Builder(registry()).leaf(TensorType((1 << 20,), np.dtype("float32")), 0)
    plan, feeds = plan_of(x.exp()), {0: np.zeros(1 << 20, "float32")}
    gc.collect()  # executors without references still hold a workspace
    executor = CuPyExecutor(device_bytes=1 << 21)
    try:
        with pytest.raises(MemoryError):
            executor.run(plan, feeds)
    finally:
        executor = CuPyExecutor()
    assert executor.run(plan, feeds)[0][0] == 1


def test_kernels_match_the_cpu_bit_for_bit() -> None:
    """Elementwise kernels, row kernels, and sums over rows."""
    pytest.importorskip("llvmlite")
    builder = Builder(registry())
    x = builder.leaf(TensorType((300, 70), np.dtype("float32")), 0)
    y = (x.tanh() * x.exp() + 1.0).softmax(axis=1)
    plan = plan_of(y, y.sum(axes=[0]), (y * x).sum(), y.max(axes=[1]))
    feeds = {0: np.random.default_rng(0).normal(size=(300, 70)).astype("float32")}
    cpu, gpu = NumPyExecutor(determinism="fast", compile="on"), settled(plan, feeds)
    for _ in range(3):
        cpu.run(plan, feeds)
    cpu.settle()
    for one, other in zip(gpu.run(plan, feeds), cpu.run(plan, feeds), strict=True):
        np.testing.assert_array_equal(one, other)
