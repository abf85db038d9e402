"""Card recipes in plans on the stand-in card: captured cuBLASLt products in one workspace, and fallbacks."""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from engine import Builder, Compiler, Limits, Plan, TensorType, Value, Values, registry
from engine.compiler.plan import make_plan
from engine.cuda import binding as card_table
from engine.cuda import compilers as cuda_compiling
from engine.cuda.binding import CardCalls, CudaBinder, recipe_texts, recipes_of_plan
from engine.cuda.card_recipe import CardPlace, CardRecipe, LaunchPhase
from engine.cuda.cuda_text import cuda_definitions
from engine.cuda.cudnn_recipes import CardTerms
from engine.cuda.cupy_backend import WORKSPACE_SHARE, CuPyExecutor
from engine.cuda.kernels import CudaKernels
from engine.cuda.products import SPLIT_TEXT
from engine.ir.errors import IndexOutOfRange
from engine.ir.run_context import NO_LIMITS, RunContext
from engine.ops.index.gather import Gather
from engine.ops.reduce.sort import Sort
from engine.runtime.interpreter import DEVICE_WORKSPACE
from engine.runtime.numpy_backend import NumPyExecutor
from tests.engine.cuda.card_memory import CARD
from tests.engine.cuda.cupy_stand_in import cupy_stand_in
from tests.engine.cuda.stand_in_card import StandInCard
from tests.engine.looping import random, written
from tests.engine.runtime.kernel_plans import FEED, layers, warnings

Array = np.ndarray[Any, Any]
Feeds = Mapping[Any, Array]


def plan_of(*outputs: Value) -> Plan:
    return make_plan(outputs[0].builder.graph(outputs), Limits())


def leaf(*shape: int, dtype: str = "float32", builder: Builder | None = None, number: int = 0) -> Value:
    return (builder or Builder(registry())).leaf(TensorType(shape, np.dtype(dtype)), number)


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def recorded(plan: Plan, feeds: Feeds, **settings: Any) -> CuPyExecutor:
    """An executor that has compiled and captured the plan."""
    executor = CuPyExecutor(**settings)
    for _ in range(2):
        executor.run(plan, feeds)
    executor.settle()
    for _ in range(3):
        executor.run(plan, feeds)
    return executor


def launches_of_a_run(executor: CuPyExecutor, plan: Plan, feeds: Feeds) -> tuple[int, int]:
    """Count graph launches and direct launches, except for clearing flags."""
    before = CARD.graph_launches, CARD.direct_launches
    executor.run(plan, feeds)
    return CARD.graph_launches - before[0], CARD.direct_launches - before[1]


def prepared_of(executor: CuPyExecutor, plan: Plan) -> Any:
    """The prepared plan that runs."""
    tier = plan if executor._tiers is None else executor._tiers.current(plan).plan
    return executor.instances.lend(tier)


@pytest.mark.usefixtures("stand_in")
def test_products_are_captured_before_compilation() -> None:
    x = leaf(6, 6)
    plan, feeds = plan_of(x @ x.transpose(), (x @ x) * 2.0), {0: numbers(6, 6)}
    executor = recorded(plan, feeds)
    assert launches_of_a_run(executor, plan, feeds) == (1, 0)
    assert executor.kernels == 0
    for actual, expected in zip(executor.run(plan, feeds), NumPyExecutor().run(plan, feeds), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_heads_are_multiplied_without_a_copy(stand_in: StandInCard, dtype: str) -> None:
    x = leaf(2, 5, 3, 4, 6, dtype=dtype)
    heads = x.transpose(axes=(2, 0, 3, 1, 4))
    q, k = (heads.slice(starts=[i, 0, 0, 0, 0], stops=[i + 1, 2, 4, 5, 6]).reshape(shape=(2, 4, 5, 6)) for i in (0, 1))
    plan, feeds = plan_of(q @ k.transpose(axes=(0, 1, 3, 2))), {0: numbers(2, 5, 3, 4, 6, dtype=dtype)}
    executor = recorded(plan, feeds)
    stand_in.cublaslt.calls.clear()
    (result,) = executor.run(plan, feeds)
    np.testing.assert_array_equal(result, NumPyExecutor().run(plan, feeds)[0])
    (called,) = stand_in.cublaslt.calls
    assert called.dtype == dtype
    assert launches_of_a_run(executor, plan, feeds) == (1, 0)


@pytest.mark.usefixtures("stand_in")
def test_new_feeds_give_new_products() -> None:
    """They lie at new addresses, with other alignments, and at addresses bound before."""
    x = leaf(6, 6)
    plan = plan_of(x @ x.transpose())
    executor, held = recorded(plan, {0: numbers(6, 6)}), []
    for k in range(20):
        feed = numbers(6, 6, seed=k)
        on_card = executor.to_device(np.concatenate([np.zeros(k % 4, "float32"), feed.ravel()]))[k % 4 :].reshape(6, 6)
        held.append(on_card)
        (result,) = executor.to_host(executor.execute(plan, {0: on_card}))
        np.testing.assert_array_equal(result, feed @ feed.T)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (numbers(3, 0), numbers(0, 4)),
        (numbers(0, 3), numbers(3, 4)),
        (numbers(3, 3, dtype="int64"), numbers(3, 3, dtype="int64", seed=1)),
        (numbers(3, 3, dtype="float16"), numbers(3, 3, seed=1)),
    ],
)
def test_products_unsupported_by_cublaslt_use_cupy(stand_in: StandInCard, a: Array, b: Array) -> None:
    builder = Builder(registry())
    x, y = (builder.leaf(TensorType.of(each), k) for k, each in enumerate((a, b)))
    plan, feeds = plan_of(x @ y), {0: a, 1: b}
    for results in (CuPyExecutor().run(plan, feeds), recorded(plan, feeds).run(plan, feeds)):
        np.testing.assert_array_equal(results[0], a @ b)
    assert not stand_in.cublaslt.calls


def test_without_cublaslt_products_are_not_captured(stand_in: StandInCard, caplog: pytest.LogCaptureFixture) -> None:
    stand_in.missing = "it is not installed"
    plan = layers()
    executor = recorded(plan, FEED, compile="on")
    graphs, _ = launches_of_a_run(executor, plan, FEED)
    assert graphs > 1
    for actual, expected in zip(executor.run(plan, FEED), NumPyExecutor().run(plan, FEED), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    assert not stand_in.cublaslt.calls
    messages = warnings(caplog)
    assert len(messages) == 2
    assert "cublasLt was not found: it is not installed" in messages[0]


def test_product_without_an_algorithm_uses_cupy_and_warns_once(
    stand_in: StandInCard, caplog: pytest.LogCaptureFixture
) -> None:
    stand_in.cublaslt.wants = 1 << 40
    x = leaf(6, 6)
    plan, feeds = plan_of(x @ x, x @ x.transpose()), {0: numbers(6, 6)}
    results = recorded(plan, feeds).run(plan, feeds)
    np.testing.assert_array_equal(results[0], feeds[0] @ feeds[0])
    assert not stand_in.cublaslt.calls
    assert len(warnings(caplog)) == 1


@pytest.mark.usefixtures("stand_in")
def test_call_refused_during_capture_runs_between_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = leaf(6, 6)
    plan, feeds = plan_of((x + 1.0) @ x, x - 1.0), {0: numbers(6, 6)}
    multiply = CardCalls._multiply

    def refusing(self: CardCalls, *args: Any) -> None:
        CARD.stream.refuse("cublasLtMatmul")
        multiply(self, *args)

    monkeypatch.setattr(CardCalls, "_multiply", refusing)
    executor = recorded(plan, feeds)
    assert launches_of_a_run(executor, plan, feeds) == (2, 1)
    np.testing.assert_array_equal(executor.run(plan, feeds)[0], (feeds[0] + 1) @ feeds[0])


# ------------------------------------------------------------ memory


def test_plans_of_an_executor_share_one_workspace(stand_in: StandInCard) -> None:
    stand_in.cublaslt.wants = 4096
    executor = CuPyExecutor(device_workspace=8192)
    x = leaf(6, 6)
    plans = [plan_of(x @ x), plan_of(x @ x.transpose(), x * 2.0)]
    for plan in plans:
        for _ in range(3):
            executor.run(plan, {0: numbers(6, 6)})
    assert {call.workspace for call in stand_in.cublaslt.calls} == {8192}
    assert {prepared_of(executor, plan)._context.workspace.data.ptr for plan in plans} == {executor._workspace.data.ptr}


@pytest.mark.parametrize("wanted", [0, 8192])
def test_product_is_limited_to_the_workspace(stand_in: StandInCard, wanted: int) -> None:
    stand_in.cublaslt.wants = 4096
    x = leaf(6, 6)
    plan, feeds = plan_of(x @ x), {0: numbers(6, 6)}
    results = recorded(plan, feeds, device_workspace=wanted).run(plan, feeds)
    np.testing.assert_array_equal(results[0], feeds[0] @ feeds[0])
    assert bool(stand_in.cublaslt.calls) is (wanted > 0)


@pytest.mark.usefixtures("stand_in")
def test_workspace_is_a_share_of_the_memory_limit() -> None:
    gc.collect()
    CARD.pool.free_all_blocks()
    before = CARD.pool.total_bytes()
    executor = CuPyExecutor()
    assert executor._workspace.nbytes == DEVICE_WORKSPACE
    assert CARD.pool.total_bytes() == before + DEVICE_WORKSPACE
    del executor
    gc.collect()
    assert CuPyExecutor(device_bytes=before + (1 << 22))._workspace.nbytes == (before + (1 << 22)) // WORKSPACE_SHARE


@pytest.mark.usefixtures("stand_in")
def test_card_without_room_for_a_workspace_is_refused() -> None:
    held = CuPyExecutor()
    with pytest.raises(RuntimeError, match="no room for a workspace"):
        CuPyExecutor(device_bytes=held._workspace.nbytes)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("room", [0, DEVICE_WORKSPACE])
def test_kernel_that_needs_more_has_its_own_workspace(room: int) -> None:
    x = leaf(300, 70)
    plan, feeds = plan_of((x.tanh() * x.exp() + 1.0).sum()), {0: numbers(300, 70)}
    executor = recorded(plan, feeds, device_workspace=room, compile="on")
    np.testing.assert_allclose(executor.run(plan, feeds)[0], NumPyExecutor().run(plan, feeds)[0], rtol=1e-5)
    prepared = prepared_of(executor, plan)
    assert (prepared._context.workspace is executor._workspace) is (room > 0)


# ------------------------------------------------------------ kernels of recipes

#: y = 2 x, for any x of float32
DOUBLE = cuda_definitions("float32") + (
    "struct Table { long long at[3]; };\n"
    "KERNEL twice(GIVEN) {\nconst long long* const table = TABLE;\nconst F* x = (const F*)table[0];\n"
    "F* y = (F*)table[1];\nconst long long i = BLOCK_X * (long long)WIDE + THREAD_X;\n"
    "if (i < table[2]) y[i] = x[i] + x[i];\n}\n"
)


def double_recipe(_: CardTerms, out: TensorType, *types: TensorType, **attrs: Any) -> CardRecipe | None:
    """A recipe for an op that is not captured by itself, to show that its recipe is."""
    if attrs["axis"] != 0 or len(types) != 1:
        return None
    table = (CardPlace("operand", 0), CardPlace("result", 0), out.size)
    return CardRecipe((LaunchPhase("twice", (1, 1), (128, 1), table),), DOUBLE)


@pytest.fixture
def _doubling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_table, "CARD_RECIPES", {**card_table.CARD_RECIPES, Sort: double_recipe})


@pytest.mark.usefixtures("stand_in", "_doubling")
@pytest.mark.parametrize("determinism", ["fast", "bitwise"])
def test_recipe_kernels_are_compiled_and_captured(determinism: Any) -> None:
    x = leaf(4, 5)
    plan, feeds = plan_of(x.sort(axis=0)), {0: numbers(4, 5)}
    executor = recorded(plan, feeds, determinism=determinism, compile="on")
    assert executor.kernels == 1
    np.testing.assert_array_equal(executor.run(plan, feeds)[0], 2 * feeds[0])
    assert launches_of_a_run(executor, plan, feeds) == (1, 0)


@pytest.mark.usefixtures("stand_in", "_doubling")
def test_op_itself_runs_until_its_recipe_is_compiled() -> None:
    x = leaf(4, 5)
    plan, feeds = plan_of(x.sort(axis=0)), {0: numbers(4, 5)}
    executor = recorded(plan, feeds)
    np.testing.assert_array_equal(executor.run(plan, feeds)[0], np.sort(feeds[0], axis=0))
    assert launches_of_a_run(executor, plan, feeds)[0] == 0


@pytest.mark.usefixtures("stand_in", "_doubling")
def test_text_that_does_not_compile_does_not_affect_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(globals(), "DOUBLE", "no C at all")
    x = leaf(4, 5)
    plan, feeds = plan_of(x.sort(axis=0), (x.tanh() * x.exp()).sin()), {0: numbers(4, 5)}
    executor = recorded(plan, feeds, compile="on")
    assert executor.kernels == 1
    np.testing.assert_array_equal(executor.run(plan, feeds)[0], np.sort(feeds[0], axis=0))
    assert any("NVRTC" in line for line in warnings(caplog))


@pytest.mark.usefixtures("_doubling")
def test_recipe_texts_include_loop_bodies() -> None:
    loop = written(
        lambda g, *given: g.scan(*given, body=lambda g, w, y: [g.sort(g.matmul(w, y), axis=0)], carries=1, length=3),
        *(random(3, 3), random(3, 2, seed=1)),
    )
    call = Values.of_program(loop.program, loop.results)
    plan = Compiler(NO_LIMITS).compile(loop.program, loop.types, call).plan
    assert recipe_texts(recipes_of_plan(plan, CardTerms())) == [DOUBLE]


@pytest.mark.usefixtures("stand_in")
def test_tf32x3_kernels_split_operands() -> None:
    cupy = cupy_stand_in()["cupy"]
    cards, modules = CardCalls(cupy, cupy.empty(1 << 16, "uint8")), CudaKernels(cupy)
    x = leaf(6, 7)
    plan = plan_of(x @ x.transpose())
    (step,) = (step for step in plan.steps if step.op.name == "matmul")
    assert recipe_texts(recipes_of_plan(plan, cards.terms("tf32x3"))) == [SPLIT_TEXT]
    binder = CudaBinder({}, {SPLIT_TEXT: modules.module(SPLIT_TEXT)}, cards)
    a = cupy.asarray(np.full((6, 7), 1 + 2.0**-12, "float32"))
    results = {}
    for precision in ("float32", "tf32x3", "tf32"):
        out = cupy.empty((6, 6), "float32")
        launches = binder.launches(RunContext(cupy), step, (a, a.T), out, 0, precision)  # type: ignore[arg-type]
        assert (launches.is_captured, launches.notes, launches.precision) == (True, False, precision)
        for function, arguments in launches.calls:
            function(*arguments)
        results[precision] = out.get()[0, 0]
    exact = 7 * (1 + 2.0**-12) ** 2
    assert results["float32"] == np.float32(exact)
    assert abs(results["tf32x3"] - exact) < 7 * 2.0**-20
    assert results["tf32"] == 7


def test_products_in_loop_bodies_use_cublaslt(stand_in: StandInCard) -> None:
    loop = written(
        lambda g, *given: g.scan(*given, body=lambda g, w, y: [g.tanh(g.matmul(w, y))], carries=1, length=3),
        *(random(3, 3), random(3, 2, seed=1)),
    )
    call = Values.of_program(loop.program, loop.results)
    plan = Compiler(NO_LIMITS).compile(loop.program, loop.types, call).plan
    results = recorded(plan, loop.feeds).run(plan, loop.feeds)
    assert len(stand_in.cublaslt.calls) >= 3
    for one, other in zip(results, NumPyExecutor().run(plan, loop.feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


#: y = x at an index; an index out of range sets the flag of its operand
PICK = cuda_definitions("float32") + (
    "struct Table { long long at[5]; };\n"
    "KERNEL pick(GIVEN) {\nconst long long* const table = TABLE;\nif (THREAD_X) return;\n"
    "const long long at = *(const long long*)table[1];\nif (at < 0 || at >= table[4]) *(int*)table[3] = 2;\n"
    "else *(F*)table[2] = ((const F*)table[0])[at];\n}\n"
)


def pick_recipe(_: CardTerms, __: TensorType, x: TensorType, *___: TensorType, **____: Any) -> CardRecipe:
    operands = CardPlace("operand", 0), CardPlace("operand", 1)
    table = (*operands, CardPlace("result", 0), CardPlace("flag"), x.shape[0])
    return CardRecipe((LaunchPhase("pick", (1, 1), (32, 1), table),), PICK)


@pytest.mark.usefixtures("stand_in")
def test_recipe_texts_of_a_plan_are_compiled_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two texts wait for each other."""
    monkeypatch.setattr(card_table, "CARD_RECIPES", {Gather: pick_recipe, Sort: double_recipe})
    monkeypatch.setattr(cuda_compiling, "_cores", lambda: 2)
    meeting, texts, compile_cuda = threading.Barrier(2), list[str](), cuda_compiling.compile_cuda

    def meet(cupy: Any, architecture: str, text: str) -> bytes:
        texts.append(text)
        meeting.wait(60)
        return compile_cuda(cupy, architecture, text)

    monkeypatch.setattr(cuda_compiling, "compile_cuda", meet)
    builder = Builder(registry())
    x, index = leaf(5, builder=builder), leaf(1, dtype="int64", builder=builder, number=1)
    plan, feeds = plan_of(x.gather(index, axis=0), x.sort(axis=0)), {0: numbers(5), 1: np.array([3])}
    executor = recorded(plan, feeds, compile="on")
    assert sorted(texts) == sorted([DOUBLE, PICK])
    assert executor.kernels == 2
    picked, doubled = executor.run(plan, feeds)
    np.testing.assert_array_equal(picked, feeds[0][3:4])
    np.testing.assert_array_equal(doubled, 2 * feeds[0])


@pytest.mark.usefixtures("stand_in")
def test_recipe_kernel_reports_an_out_of_range_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_table, "CARD_RECIPES", {Gather: pick_recipe})
    builder = Builder(registry())
    x, index = leaf(5, builder=builder), leaf(1, dtype="int64", builder=builder, number=1)
    plan, feeds = plan_of(x.gather(index, axis=0)), {0: numbers(5), 1: np.array([3])}
    executor = recorded(plan, feeds, compile="on")
    assert executor.kernels == 1
    for _ in range(2):
        with pytest.raises(IndexOutOfRange) as caught:
            executor.run(plan, {0: feeds[0], 1: np.array([5])})
        assert (caught.value.operand, caught.value.expected) == (1, "in [0, 5)")
        np.testing.assert_array_equal(executor.run(plan, feeds)[0], feeds[0][3:4])
