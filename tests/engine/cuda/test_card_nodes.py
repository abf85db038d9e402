"""Nodes with card recipes, in plans on the stand-in card: values and gradients match NumPy."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from engine import Limits, Plan
from engine.autodiff.vjp import vjp
from engine.compiler.plan import Step, make_plan
from engine.cuda import binding as cuda_recipes
from engine.cuda.card_recipe import CardRecipe
from engine.cuda.cupy_backend import CuPyExecutor
from engine.runtime.numpy_backend import NumPyExecutor
from tests.contract.cases import Case, all_cases, complex_cases, each, feeds_of
from tests.engine.cuda.card_memory import CARD
from tests.engine.runtime.kernel_plans import warnings
from tests.sampling import sampled

OPS = {
    *("conv1d", "conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d"),
    *("max_pool2d", "avg_pool2d", "matmul", "scatter_add", "gather", "segment_sum", "embedding", "sum", "mean"),
}
#: allowed difference of results, relative to the largest of them
TOLERANCES = {"float16": 2.0**-8, "float32": 1e-5, "float64": 1e-12}
#: cases left to CuPy: integers, an empty sum, and an index that does not cover all rows
LEFT_TO_CUPY = {
    "matmul(int[2,3],int[3,2])",
    "matmul(real[2,0],real[0,3])",
    "scatter_add(real[3,4],int[2,5],real[2,5],axis=-1)",
}


def has_recipes(case: Case) -> bool:
    return case.op.name in OPS


def op_by_dtype(pair: tuple[Case, str]) -> list[Hashable]:
    return [(pair[0].op.name, pair[1])]


CASES_BY_DTYPE = [*product(filter(has_recipes, (*all_cases(), *complex_cases())), TOLERANCES)]


def value_and_gradients(case: Case, dtype: str) -> tuple[Plan, dict[Any, Any]]:
    arrays = case.arrays(dtype)
    written = case.write(arrays)
    pairs = [(y, y.full_like(1.0)) for y in written.float_outputs]
    gradients = vjp(written.builder, pairs, written.float_operands)
    outputs = [*written.outputs, *(x for x in gradients if x is not None)]
    return make_plan(written.builder.graph(outputs), Limits()), feeds_of(arrays)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(("case", "dtype"), sampled(CASES_BY_DTYPE, op_by_dtype))
def test_plan_matches_numpy(case: Case, dtype: str, caplog: pytest.LogCaptureFixture) -> None:
    plan, feeds = value_and_gradients(case, dtype)
    executor = CuPyExecutor("bitwise", compile="on")
    runs = [executor.run(plan, feeds) for _ in range(4)]
    for actual, expected in zip(runs[0], NumPyExecutor().run(plan, feeds), strict=True):
        assert actual.dtype == expected.dtype
        tolerance = TOLERANCES[dtype] * max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(actual, expected, atol=tolerance, rtol=0)
    for later in runs[1:]:
        for one, other in zip(later, runs[0], strict=True):
            np.testing.assert_array_equal(one, other)
    assert not warnings(caplog)


@pytest.mark.usefixtures("stand_in")
@each(lambda case: has_recipes(case) and not case.is_complex)
def test_nodes_use_recipes_in_one_graph_launch(case: Case) -> None:
    plan, feeds = value_and_gradients(case, "float32")
    recipe_ops: list[str] = []

    def recording(terms: Any, step: Step, *args: Any) -> CardRecipe | None:
        recipe = original(terms, step, *args)
        recipe_ops.extend([] if recipe is None else [step.op.name])
        return recipe

    original = cuda_recipes.recipe_on
    with patch("engine.cuda.binding.recipe_on", recording):
        executor = CuPyExecutor("bitwise", compile="on")
        for _ in range(3):
            executor.run(plan, feeds)
    if str(case) in LEFT_TO_CUPY:
        assert case.op.name not in recipe_ops
        return
    assert recipe_ops or case.op.name in {"sum", "mean"}  # sums are fused into kernels
    before = CARD.graph_launches
    executor.run(plan, feeds)
    assert CARD.graph_launches == before + 1
