"""vmap against a loop, for every op, its gradient, and every choice of mapped operands."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from engine import Graph, Plan
from engine.autodiff.vmap import vmap
from engine.compiler.plan import make_plan
from engine.ir.passes import optimise
from tests.contract.cases import EXECUTOR, LIMITS, Array, Case, feeds_of, has_rule, run_graph, sample
from tests.contract.test_derivatives import gradient_of
from tests.sampling import together

SIZE = 3


def run_loop(plan: Plan, feeds: dict[Any, Array], mapped: set[Any]) -> list[Array]:
    runs = [EXECUTOR.run(plan, {key: a[i] if key in mapped else a for key, a in feeds.items()}) for i in range(SIZE)]
    return [np.stack(results) for results in zip(*runs, strict=True)]


def check_against_loop(case: Case, graph: Graph) -> None:
    single = case.arrays()
    batch_arrays = [np.stack(stacked) for stacked in zip(*(case.arrays(salt=i) for i in range(SIZE)), strict=True)]
    plan = make_plan(optimise(graph), LIMITS)
    for flags in product([False, True], repeat=len(single)):
        if any(flags):
            mapped = {i for i, flag in enumerate(flags) if flag}
            feeds = feeds_of([m if flag else s for m, s, flag in zip(batch_arrays, single, flags, strict=True)])
            needed = {key: feeds[key] for key in graph.feeds}
            batched = run_graph(vmap(graph, mapped, SIZE), needed)
            for actual, expected in zip(batched, run_loop(plan, needed, mapped), strict=True):
                assert actual.shape == expected.shape
                assert actual.dtype == expected.dtype
                np.testing.assert_allclose(actual, expected, 1e-10, 1e-12)


@together
@sample(lambda case: len(case.sample.operands) > 0)
def test_vmap_matches_loop(case: Case) -> None:
    written = case.write(case.arrays())
    check_against_loop(case, written.builder.graph(written.outputs))


@together
@sample(has_rule)
def test_vmap_of_gradient_matches_loop(case: Case) -> None:
    check_against_loop(case, gradient_of(case))


def check_empty_batch(case: Case, graph: Graph) -> None:
    """Assert that zero examples give empty results with the shape of one example after the first axis."""
    for flags in product([False, True], repeat=len(case.sample.operands)):
        mapped = {i for i, flag in enumerate(flags) if flag}
        batched = vmap(graph, mapped, 0)
        single_types = [graph.nodes[i].type for i in graph.outputs]
        assert [batched.nodes[i].type for i in batched.outputs] == [y.with_shape((0, *y.shape)) for y in single_types]


@together
@sample(lambda case: len(case.sample.operands) > 0)
def test_vmap_over_empty_axis(case: Case) -> None:
    written = case.write(case.arrays())
    check_empty_batch(case, written.builder.graph(written.outputs))


@together
@sample(has_rule)
def test_vmap_of_gradient_over_empty_axis(case: Case) -> None:
    check_empty_batch(case, gradient_of(case))
