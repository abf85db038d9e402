"""Laws of whole programs, on random ones: passes, copied nodes, finite differences, batches, and the planned peak."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from engine import (
    COTANGENTS,
    LATEST,
    Builder,
    Compiler,
    Graph,
    Limits,
    Program,
    Statement,
    TensorType,
    open_executor,
    registry,
)
from engine.autodiff.vjp import expand_grad, vjp_or_zeros
from engine.autodiff.vmap import vmap
from engine.compiler.body_plans import with_planned_bodies
from engine.compiler.plan import Plan, make_plan
from engine.ir.passes import PASSES, Allowance, cse, dce, optimise
from engine.ir.program import Function
from tests.contract.cases import assert_planned_peak_holds
from tests.engine.strategies import Array, Sketch, copied, sketches

pytestmark = pytest.mark.slow

EXECUTOR = open_executor(os.environ.get("GRADSERVE_TEST_DEVICE", "cpu"))
OPS = registry().ops
EXACT = {"rtol": 1e-12, "atol": 1e-13}

some = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def run(graph: Graph, feeds: Mapping[Any, Array]) -> list[Array]:
    return EXECUTOR.run(planned(graph), feeds)


def planned(graph: Graph) -> Plan:
    """Return the plan of an unoptimised graph."""
    return make_plan(with_planned_bodies(graph, Limits(), Allowance()), Limits())


def seed_for(sketch: Sketch, node: int) -> Array:
    rng = np.random.default_rng(7)
    return np.asarray(rng.uniform(0.5, 1.5, sketch.shape(node)))


def graph_of_gradients(sketch: Sketch, of: int, wrt: Sequence[int]) -> Graph:
    """Return the graph of the value of `of` and its gradients, expanded and not optimised."""
    builder, values = sketch.program().build(sketch_types(sketch, (of, *wrt)), (of, *wrt), wrt=wrt)
    expanded = expand_grad(builder.graph([values[i] for i in (of, *wrt)]))
    writing = Builder(registry(), nodes=list(expanded.nodes))
    y, *xs = (writing.value(i) for i in expanded.outputs)
    return writing.graph([y, *vjp_or_zeros(writing, [(y, writing.constant(seed_for(sketch, of)))], xs)])


def sketch_types(sketch: Sketch, roots: Sequence[int]) -> dict[int, TensorType]:
    needed = set(sketch.program().needed(roots))
    return {node: type for node, type in sketch.types.items() if node in needed}


def gradients(
    statements: Sequence[Statement],
    feeds: Mapping[int, Array],
    of: int,
    wrt: Sequence[int],
    seed: Array,
    functions: Sequence[Function] = (),
) -> list[Array]:
    """Return the value and the gradients, as a client gets them: feeds that are not needed are left out."""
    program = Program(registry(), statements, opset=LATEST, functions=functions)
    needed = set(program.needed((of, *wrt)))
    fed: dict[Any, Array] = {node: a for node, a in feeds.items() if node in needed}
    types = {node: TensorType.of(a) for node, a in fed.items()}
    compiled = Compiler(Limits()).gradients(program, types, of=of, wrt=wrt, cotangent=TensorType.of(seed))
    key = (COTANGENTS, of)
    return EXECUTOR.run(compiled.plan, fed | {key: seed} if key in compiled.plan.feeds else fed)


def value_of(
    statements: Sequence[Statement],
    feeds: Mapping[int, Array],
    of: int,
    seed: Array,
    functions: Sequence[Function],
) -> float:
    program = Program(registry(), statements, opset=LATEST, functions=functions)
    needed = set(program.needed((of,)))
    fed = {node: a for node, a in feeds.items() if node in needed}
    compiled = Compiler(Limits()).forward(program, {n: TensorType.of(a) for n, a in fed.items()}, [of])
    return float(np.sum(EXECUTOR.run(compiled.plan, fed)[0] * seed))


# ---------------------------------------------------------------- passes


@some
@given(sketches(functions=True), st.data())
def test_no_subset_of_passes_changes_a_result(sketch: Sketch, data: st.DataObject) -> None:
    wrt = data.draw(st.lists(st.sampled_from(sketch.singles()), min_size=1, max_size=3, unique=True))
    graph = graph_of_gradients(sketch, sketch.singles()[-1], wrt)
    feeds = {key: sketch.feeds[key] for key in graph.feeds}
    expected = run(graph, feeds)
    subsets = chain.from_iterable(combinations(PASSES, n) for n in range(1, len(PASSES) + 1))
    for passes in (*subsets, (cse, dce), (dce, cse, dce, cse)):
        reduced = graph
        for apply in passes:
            reduced = apply(reduced)
        assert len(dce(reduced).nodes) <= len(graph.nodes)
        actual = run(reduced, {key: feeds[key] for key in reduced.feeds})
        for a, b in zip(actual, expected, strict=True):
            np.testing.assert_allclose(a, b, **EXACT)


# ---------------------------------------------------------------- copies of nodes


def readers(nodes: Sequence[Statement], which: int) -> list[tuple[int, int]]:
    """Return the places that read `which` as a value: all but the x of a `grad`, which names that very node."""
    return [
        (user, position)
        for user, s in enumerate(nodes)
        for position, operand in enumerate(s.operands)
        if operand == which and not (s.op.name == "grad" and position == 1)
    ]


def may_move(nodes: Sequence[Statement], which: int, wrt: Sequence[int]) -> bool:
    """Return whether readers may use a copy without changes: no derivative is taken with respect to this node."""
    named = {*wrt, *(s.operands[1] for s in nodes if s.op.name == "grad")}
    return which not in named and nodes[which].op.name not in ("input", "parameter")


@settings(some, max_examples=100)
@given(sketches(functions=True), st.data())
def test_copying_a_node_changes_no_gradient(sketch: Sketch, data: st.DataObject) -> None:
    nodes, of = sketch.nodes, sketch.singles()[-1]
    wrt = data.draw(st.lists(st.sampled_from(sketch.singles()), min_size=1, max_size=3, unique=True))
    which = data.draw(st.integers(0, len(nodes) - 1))
    movable = readers(nodes, which) if may_move(nodes, which, wrt) else []
    moved = data.draw(st.lists(st.sampled_from(movable), unique=True)) if movable else []
    seed = seed_for(sketch, of)

    def place(node: int) -> int:
        return node + (node > which)

    expected = gradients(nodes, sketch.feeds, of, wrt, seed, sketch.functions)
    edited = copied(nodes, which, moved)
    feeds = {place(node): a for node, a in sketch.feeds.items()}
    actual = gradients(edited, feeds, place(of), [place(x) for x in wrt], seed, sketch.functions)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, **EXACT)


def small(*lines: tuple[Any, ...]) -> list[Statement]:
    """Return a program written as (op, operands…) lines."""
    return [Statement(OPS[op], operands) for op, *operands in lines]


def test_equal_nodes_are_distinct_variables() -> None:
    nodes = small(("parameter",), ("square", 0), ("square", 0), ("mul", 1, 2))
    x, one = np.array(3.0), np.array(1.0)
    assert [float(a) for a in gradients(nodes, {0: x}, 3, [1, 2, 0], one)] == [81, 9, 9, 108]


def test_copy_of_a_wrt_node_does_not_contribute() -> None:
    nodes = small(("parameter",), ("exp", 0), ("exp", 0), ("mul", 1, 2), ("grad", 3, 1))
    x, one = np.array(0.5), np.array(1.0)
    assert np.allclose(gradients(nodes, {0: x}, 4, [1, 2, 0], one), [np.exp(0.5), 0, 1, np.exp(0.5)])


def test_gradient_equal_to_a_node_is_a_distinct_variable() -> None:
    """d(x·w)/dx is w, but a derivative with respect to that gradient is not one with respect to w, nor vice versa."""
    nodes = small(("parameter",), ("parameter",), ("mul", 0, 1), ("grad", 2, 0), ("mul", 3, 1), ("square", 3))
    feeds, one = {0: np.array(2.0), 1: np.array(5.0)}, np.array(1.0)
    assert [float(a) for a in gradients(nodes, feeds, 4, [3, 1], one)] == [25, 5, 10]
    assert [float(a) for a in gradients(nodes, feeds, 5, [3], one)] == [25, 10]


def test_seed_and_gradient_are_distinct_variables() -> None:
    nodes = small(("parameter",), ("parameter",), ("grad", 0, 0, 1), ("mul", 2, 1))
    feeds, one = {0: np.array(2.0), 1: np.array(5.0)}, np.array(1.0)
    assert [float(a) for a in gradients(nodes, feeds, 3, [2, 1], one)] == [25, 5, 10]


def test_gradient_wrt_inner_node_varies_that_node_alone() -> None:
    """w = exp(x), u = w², g = du/dx = 2w·exp(x): g depends on w through u', not through the form of exp'."""
    nodes = small(("parameter",), ("exp", 0), ("square", 1), ("grad", 2, 0))
    x, w = np.array(0.5), np.exp(0.5)
    assert np.allclose(gradients(nodes, {0: x}, 3, [1, 0], np.array(1.0)), [2 * w * w, 2 * w, 4 * w * w])


# ---------------------------------------------------------------- finite differences


def perturbed(sketch: Sketch, node: int) -> tuple[list[Statement], int]:
    """Return the program with δ added to `node` for all its readers; δ is a new leaf, at `node` + 1."""

    def place(i: int, user: int | None = None) -> int:
        return i if i < node or (i == node and user is None) else i + 2

    before = [*sketch.nodes[: node + 1], Statement(OPS["input"]), Statement(OPS["add"], (node, node + 1))]
    after = [replace(s, operands=tuple(place(i, node) for i in s.operands)) for s in sketch.nodes[node + 1 :]]
    return [*before, *after], node + 1


def finite_difference(sketch: Sketch, node: int, of: int, along: Array, seed: Array, h: float) -> float:
    """Return the derivative of sum(of · seed) as `node` moves along a direction: five points, error O(h⁴)."""
    nodes, delta = perturbed(sketch, node)
    feeds = {i + 2 * (i > node): a for i, a in sketch.feeds.items()}
    moved = of + 2 * (of >= node)

    def value_at(t: float) -> float:
        return value_of(nodes, feeds | {delta: t * h * along}, moved, seed, sketch.functions)

    return (8 * (value_at(1) - value_at(-1)) - (value_at(2) - value_at(-2))) / (12 * h)


@settings(some, max_examples=300)
@given(sketches(functions=True), st.data())
def test_gradients_match_finite_differences(sketch: Sketch, data: st.DataObject) -> None:
    """With respect to leaves and inner nodes: when a node alone moves, all nodes that depend on it move."""
    of, node = sketch.singles()[-1], data.draw(st.sampled_from(sketch.singles()))
    seed = seed_for(sketch, of)
    along = np.asarray(np.random.default_rng(3).uniform(-1, 1, sketch.shape(node)))
    coarse, fine = (finite_difference(sketch, node, of, along, seed, h) for h in (2e-3, 1e-3))
    assume(abs(coarse - fine) <= 1e-7 * (1 + abs(fine)))  # otherwise the differences are not accurate enough
    actual = float(np.sum(gradients(sketch.nodes, sketch.feeds, of, [node], seed, sketch.functions)[1] * along))
    np.testing.assert_allclose(actual, fine, 2e-7, 2e-7)


# ---------------------------------------------------------------- batches


@some
@given(sketches(functions=True), st.data())
def test_vmap_matches_a_loop(sketch: Sketch, data: st.DataObject) -> None:
    size = 3
    wrt = data.draw(st.lists(st.sampled_from(sketch.singles()), min_size=1, max_size=2, unique=True))
    graph = graph_of_gradients(sketch, sketch.singles()[-1], wrt)
    mapped = set(data.draw(st.lists(st.sampled_from(sketch.leaves), min_size=1, unique=True)))
    rng = np.random.default_rng(11)
    feeds: dict[Any, Array] = {
        key: rng.uniform(-1, 1, (size, *sketch.feeds[key].shape)) if key in mapped else sketch.feeds[key]
        for key in graph.feeds
    }
    actual = run(optimise(vmap(graph, mapped, size)), feeds)
    for i in range(size):
        single = run(graph, {key: a[i] if key in mapped else a for key, a in feeds.items()})
        for a, b in zip(actual, single, strict=True):
            np.testing.assert_allclose(a[i], b, 1e-10, 1e-12)


# ---------------------------------------------------------------- the plan

BATCH = 4096


@settings(some, max_examples=15)
@given(sketches(functions=True), st.data())
@pytest.mark.skipif(EXECUTOR.device != "cpu", reason="tracemalloc sees NumPy's allocations only")
def test_planned_peak_is_an_upper_bound(sketch: Sketch, data: st.DataObject) -> None:
    wrt = data.draw(st.lists(st.sampled_from(sketch.singles()), min_size=1, max_size=2, unique=True))
    graph = graph_of_gradients(sketch, sketch.singles()[-1], wrt)
    plan = planned(optimise(vmap(graph, set(sketch.leaves), BATCH)))
    feeds = {key: np.repeat(sketch.feeds[key][None], BATCH, axis=0) for key in plan.feeds}
    assert_planned_peak_holds(plan, feeds)
