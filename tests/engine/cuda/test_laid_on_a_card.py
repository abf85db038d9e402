"""Products written in the layout of their reader, on the stand-in card: by cuBLASLt, in one graph, matching NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from unittest.mock import patch

import numpy as np
import pytest

from engine import Builder, Limits, TensorType, Value, registry
from engine.compiler.compiler import with_precision
from engine.compiler.plan import Plan, make_plan
from engine.cuda.binding import recipe_on
from engine.cuda.cupy_backend import CuPyExecutor
from engine.ir.tensor_type import HostArray
from engine.ops.linalg.layouts import StridedProducts
from engine.runtime.numpy_backend import NumPyExecutor
from tests.engine.cuda.card_memory import CARD

SHAPES = {"x": (6, 8), "w": (8, 24), "bias": (24,), "out": (8, 200), "last": (200,)}
#: allowed difference of sums of some dozens of products, of numbers near 1
TOLERANCES = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-13}
#: strided products: interleaved heads; the first sum, with a bias except in float64; the last, unless a kernel has it
STRIDED_PRODUCTS = {"float16": 3, "float32": 2, "float64": 1}


def attention(leaves: Mapping[str, Value]) -> Value:
    """Attention of two heads, whose queries, keys and values are one product."""
    x, w, bias, out, last = leaves.values()
    one = (x @ w).reshape(shape=(2, 3, 24)) + bias
    three = one.reshape(shape=(2, 3, 3, 2, 4)).transpose(axes=(2, 0, 3, 1, 4))
    q, k, v = (
        three.slice(starts=(i, 0, 0, 0, 0), stops=(i + 1, 2, 2, 3, 4)).reshape(shape=(2, 2, 3, 4)) for i in range(3)
    )
    y = (q @ k.transpose()).softmax(axis=3) @ v
    return (y.transpose(axes=(0, 2, 1, 3)).reshape(shape=(6, 8)) @ out + last).tanh()


def planned(dtype: str) -> tuple[Plan, dict[str, HostArray]]:
    builder, draws = Builder(registry()), np.random.default_rng(3)
    feeds = {name: draws.normal(size=shape).astype(dtype) / 2 for name, shape in SHAPES.items()}
    leaves = {name: builder.leaf(TensorType.of(array), name) for name, array in feeds.items()}
    return make_plan(builder.graph([attention(leaves)]), Limits()), feeds


def settled(plan: Plan, feeds: Mapping[str, HostArray]) -> CuPyExecutor:
    """An executor that runs the compiled plan."""
    executor = CuPyExecutor("fast", compile="on")
    for _ in range(2):
        executor.run(plan, feeds)
    executor.settle()
    return executor


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("precision", ["float32", "tf32x3"])
def test_plan_is_one_graph_without_copies(dtype: str, precision: str) -> None:
    plan, feeds = planned(dtype)
    plan = with_precision(plan, precision)
    executor = settled(plan, feeds)
    with patch("engine.cuda.binding.recipe_on", wraps=recipe_on) as bound:
        for _ in range(3):
            before = CARD.graph_launches, CARD.direct_launches
            (actual,) = executor.run(plan, feeds)
    assert CARD.graph_launches - before[0] == 1
    assert CARD.direct_launches - before[1] <= 1
    strided = [call.args[1].op for call in bound.call_args_list if isinstance(call.args[1].op, StridedProducts)]
    assert len({id(op) for op in strided}) == STRIDED_PRODUCTS[dtype]
    (expected,) = NumPyExecutor().run(plan, feeds)
    np.testing.assert_allclose(actual, expected, atol=TOLERANCES[dtype], rtol=0)


@pytest.mark.usefixtures("stand_in")
def test_without_cublaslt_products_use_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.cuda import binding as cuda_recipes

    monkeypatch.setattr(cuda_recipes.CardCalls, "_open_products", lambda self: None)
    plan, feeds = planned("float32")
    executor = settled(plan, feeds)
    runs = [executor.run(plan, feeds)[0] for _ in range(3)]
    (expected,) = NumPyExecutor().run(plan, feeds)
    for actual in runs:
        np.testing.assert_allclose(actual, expected, atol=TOLERANCES["float32"], rtol=0)
