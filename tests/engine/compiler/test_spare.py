"""Rematerialization: plans that recompute values to fit a memory budget, with the same bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from engine import (
    LATEST,
    OPSET,
    Batch,
    Compiler,
    Gradients,
    Graph,
    Limits,
    OverBudget,
    Program,
    Statement,
    TensorType,
    registry,
)
from engine.autodiff.vjp import expand_grad, vjp_or_zeros
from engine.compiler.body_plans import optimise_and_plan_bodies
from engine.compiler.compiler import CompileRequest, plan_within, write_call
from engine.compiler.fit_memory import with_segments
from engine.compiler.plan import make_plan
from engine.ir.errors import OverMemory
from engine.ir.graph import Builder
from engine.ir.passes import Allowance, optimise
from tests.contract.cases import EXECUTOR, LARGE, assert_planned_peak_holds
from tests.engine.autodiff.calls.asking import Array, Net
from tests.engine.autodiff.calls.networks import attention, convolution, parts
from tests.engine.looping import Writer, written
from tests.engine.strategies import Sketch, sketches

MIB: Final = 1 << 20
SEGMENTS: Final = [(1, 1), (1, 4), (2, 2), (3, 6), (8, 64), (32, 32)]


def layers(
    count: int, width: int, rows: int, opset: int = OPSET, acts: Sequence[str] = ("sin", "tanh", "sin")
) -> tuple[Program, dict[int, Array]]:
    """The mean of squares after residual layers, h + sin(tanh(sin(h w + b))), or with other activations."""
    net, rng = Net(), np.random.default_rng(count)
    h = net.leaf(rng.standard_normal((rows, width), np.float32), "input")
    weights = [net.leaf(0.1 * rng.standard_normal((width, width), np.float32)) for _ in range(count)]
    biases = [net.leaf(0.1 * rng.standard_normal(width, np.float32)) for _ in range(count)]
    for w, b in zip(weights, biases, strict=True):
        inner = net.add("add", net.add("matmul", h, w), b)
        for act in acts:
            inner = net.add(act, inner)
        h = net.add("add", h, inner)
    net.add("mean", net.add("square", h))
    return Program(registry(), net.statements, opset=opset), net.feeds


def types_of(feeds: dict[int, Array]) -> dict[int, TensorType]:
    """Types of the feeds."""
    return {node: TensorType.of(x) for node, x in feeds.items()}


SMALL, SMALL_FEEDS = layers(24, 16, 200)
LATER, _ = layers(24, 16, 200, LATEST)


def peak_of(program: Program, feeds: dict[int, Array]) -> int:
    """The peak bytes of the fastest plan of all gradients."""
    return Compiler(Limits()).gradients(program, types_of(feeds)).plan.peak_bytes


PEAK = peak_of(SMALL, SMALL_FEEDS)


@pytest.mark.slow
def test_sixty_layers_fit_in_an_eighth_of_their_peak() -> None:
    program, feeds = layers(60, 128, 1, acts=("gelu",))
    types = types_of(feeds) | {0: TensorType((5632, 128), np.dtype("float32"))}
    fitted = plan_within(CompileRequest(program, types, Gradients.of_program(program), Limits(), memory=128 * MIB))
    assert fitted.fastest.peak_bytes > 1e9
    assert fitted.plan.peak_bytes <= 128 * MIB
    assert fitted.plan.flops == fitted.fastest.flops + fitted.plan.recomputed_flops <= 1.5 * fitted.fastest.flops


@pytest.mark.parametrize("part", [1, 2, 3])
def test_memory_budget_does_not_change_results(part: int) -> None:
    compiler, types, call = Compiler(Limits()), types_of(SMALL_FEEDS), Gradients.of_program(SMALL)
    free = compiler.compile(SMALL, types, call).plan
    rematerialized = compiler.compile(SMALL, types, call, memory=PEAK // part).plan
    assert rematerialized.peak_bytes <= PEAK // part
    assert bool(rematerialized.recomputed_flops) == (part > 1)
    for a, b in zip(*(EXECUTOR.run(plan, SMALL_FEEDS) for plan in (free, rematerialized)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_less_memory_needs_more_flops() -> None:
    types, call = types_of(SMALL_FEEDS), Gradients.of_program(SMALL)
    plans = [plan_within(CompileRequest(SMALL, types, call, Limits(), memory=PEAK // part)).plan for part in (1, 2, 3)]
    assert plans[0].flops < plans[1].flops < plans[2].flops


@pytest.mark.parametrize("network", [convolution, attention, parts])
@pytest.mark.parametrize("coarse_fine", SEGMENTS, ids=str)
def test_networks_in_segments(network: Callable[[], Any], coarse_fine: tuple[int, int]) -> None:
    built = network()
    net, call = built.net, Gradients.of_program(built.net.program, built.loss, built.parameters)
    graph = optimise_and_plan_bodies(
        write_call(CompileRequest(net.program, net.types, call, Limits())).graph, Limits(), Allowance()
    )
    assert_same(graph, with_segments(graph, *coarse_fine), net.feeds)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sketches())
def test_random_graphs_in_segments(sketch: Sketch) -> None:
    output = sketch.singles()[-1]
    roots = (output, *sketch.leaves)
    builder, values = sketch.program().build(sketch.types, roots, wrt=sketch.leaves)
    expanded = expand_grad(builder.graph([values[i] for i in roots]))
    writing = Builder(registry(), nodes=list(expanded.nodes))
    y, *xs = (writing.value(i) for i in expanded.outputs)
    graph = optimise(writing.graph([y, *vjp_or_zeros(writing, [(y, y.full_like(1.0))], xs)]))
    for coarse, fine in SEGMENTS:
        assert_same(graph, with_segments(graph, coarse, fine), sketch.feeds)


def assert_same(graph: Graph, other: Graph, feeds: Mapping[Any, Array]) -> None:
    """Assert that two graphs give the same bits."""
    results = [EXECUTOR.run(make_plan(g, Limits()), {key: feeds[key] for key in g.feeds}) for g in (graph, other)]
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_only_later_opsets_rematerialize_without_a_budget() -> None:
    tight, types = Limits(bytes=PEAK // 2), types_of(SMALL_FEEDS)
    with pytest.raises(OverBudget) as caught:
        Compiler(tight).gradients(SMALL, types)
    assert caught.value.node is None
    assert caught.value.detail == f"this needs {PEAK} bytes, and the limit is {PEAK // 2} bytes"
    rematerialized = Compiler(tight).gradients(LATER, types).plan
    assert rematerialized.peak_bytes <= PEAK // 2
    assert rematerialized.recomputed_flops > 0


def deep(g: Writer, *operands: int) -> Sequence[int]:
    """A step of a loop: a network of many layers."""
    *weights, h = operands
    for w in weights:
        h = g.add(h, g.sin(g.tanh(g.sin(g.matmul(h, w)))))
    return [h]


def deep_loop(g: Writer, *operands: int) -> Sequence[int]:
    """A loop of five deep steps."""
    results: list[int] = g.scan(*operands, body=deep, carries=1, length=5)
    return results


@pytest.mark.slow
def test_loop_bodies_rematerialize() -> None:
    rng = np.random.default_rng(0)
    weights = [0.1 * rng.standard_normal((8, 8)) for _ in range(16)]
    case = written(deep_loop, *weights, rng.standard_normal((100, 8)))
    call = Gradients.of_program(case.program)
    free = plan_within(CompileRequest(case.program, case.types, call, Limits())).plan
    fitted = plan_within(CompileRequest(case.program, case.types, call, Limits(), memory=int(0.7 * free.peak_bytes)))
    assert fitted.plan.peak_bytes <= 0.7 * free.peak_bytes
    assert 0 < fitted.plan.recomputed_flops < 0.5 * free.flops
    for a, b in zip(*(EXECUTOR.run(plan, case.feeds) for plan in (free, fitted.plan)), strict=True):
        np.testing.assert_array_equal(a, b)
    tight = free.peak_bytes // 10
    with pytest.raises(OverMemory) as caught:
        plan_within(CompileRequest(case.program, case.types, call, Limits(), memory=tight))
    assert caught.value.node == len(weights) + 1
    assert caught.value.expected == f"at most {tight} bytes"
    assert caught.value.peak is not None
    assert caught.value.peak < free.peak_bytes


def test_budget_cannot_exceed_the_limit() -> None:
    call, types = Gradients.of_program(SMALL), types_of(SMALL_FEEDS)
    compiled = Compiler(Limits(bytes=PEAK // 2)).compile(SMALL, types, call, memory=PEAK)
    assert compiled.plan.peak_bytes <= PEAK // 2


def test_impossible_budget_error_names_a_node_and_the_minimum() -> None:
    call, types = Gradients.of_program(SMALL), types_of(SMALL_FEEDS)
    with pytest.raises(OverMemory) as caught:
        Compiler(Limits()).compile(SMALL, types, call, memory=PEAK // 5)
    assert caught.value.node is not None
    name = SMALL.statements[caught.value.node].op.name
    assert caught.value.detail.startswith(f"node {caught.value.node} ({name}): this needs ")
    least = caught.value.peak
    assert least is not None
    assert PEAK // 5 < least < PEAK // 3
    assert Compiler(Limits()).compile(SMALL, types, call, memory=least).plan.peak_bytes <= least


def test_hopeless_budget_is_refused_without_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.compiler.fit_memory.with_segments", lambda *_: pytest.fail("tried"))
    net = Net()
    net.add("sum", net.add("sin", net.add("sin", net.leaf(np.zeros((1000, 1000))))))
    for call in (Gradients.of_program(net.program), Gradients.of_program(net.program, outputs=[1])):
        with pytest.raises(OverMemory) as caught:
            Compiler(Limits(bytes=12 * MIB)).compile(net.program, net.types, call)
        assert caught.value.node in (0, 1, 2)


def test_flop_limit_applies_to_rematerialized_plans() -> None:
    types, call = types_of(SMALL_FEEDS), Gradients.of_program(SMALL)
    flops = Compiler(Limits()).compile(SMALL, types, call).plan.flops
    with pytest.raises(OverMemory):
        Compiler(Limits(flops=flops + flops // 100)).compile(SMALL, types, call, memory=PEAK // 3)


def test_each_budget_has_its_own_plan() -> None:
    compiler, types, call = Compiler(Limits()), types_of(SMALL_FEEDS), Gradients.of_program(SMALL)
    budgets = (None, PEAK, PEAK + 1, PEAK // 2)
    compiled = [compiler.compile(SMALL, types, call, memory=memory) for memory in budgets]
    assert not any(each.cached for each in compiled)
    assert len({each.key for each in compiled}) == len({each.plan.digest for each in compiled}) == len(budgets)
    assert all(compiler.compile(SMALL, types, call, memory=memory).cached for memory in budgets)


@pytest.mark.slow
def test_measured_peak_of_a_rematerialized_plan_matches_the_plan() -> None:
    program, feeds = layers(24, 64, 8192)
    peak, call = peak_of(program, feeds), Gradients.of_program(program, wrt=range(1, 25))
    plan = Compiler(Limits()).compile(program, types_of(feeds), call, memory=peak // 2).plan
    assert LARGE < plan.peak_bytes <= peak // 2
    EXECUTOR.run(plan, feeds)
    assert_planned_peak_holds(plan, feeds)


def test_over_budget_graph_without_feeds_is_refused() -> None:
    nodes = [Statement(registry().ops["full"], (), {"shape": [1 << 20]}), Statement(registry().ops["exp"], (0,))]
    program = Program(registry(), nodes, opset=LATEST)
    with pytest.raises(OverBudget):
        Compiler(Limits(bytes=MIB)).forward(program, {})


def test_backward_pass_may_start_with_a_constant() -> None:
    """A gradient of mapped x with respect to another leaf: the first node is a zero gradient."""
    net = Net()
    other, x = net.leaf(1.0), net.leaf(np.ones((9, 1)))
    call = Batch.of_program(net.program, net.types, [x], of=x, wrt=[other])
    peak = Compiler(Limits()).compile(net.program, net.types, call).plan.peak_bytes
    with pytest.raises(OverMemory):
        Compiler(Limits()).compile(net.program, net.types, call, memory=peak - 1)
