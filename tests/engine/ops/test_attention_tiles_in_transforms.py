"""Tiled attention in transformed graphs: higher derivatives, batches, programs and plans."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from engine import HVP, JVP, Builder, Gradients, Graph, Hessian, Limits, Program, Statement, TensorType, registry
from engine.analysis.export import export_gradients
from engine.autodiff.jvp import jvp
from engine.autodiff.vjp import vjp
from engine.autodiff.vmap import vmap
from engine.compiler.compiler import Compiler
from engine.ir.graph import Value
from engine.ir.verify import verify
from engine.ops.nn import attention
from engine.ops.nn import attention_tiles as score_tiles
from engine.ops.nn.attention_tiles import GRADIENTS, MASK_GRADIENT, ROWS, ScoreOp
from tests.contract.cases import LIMITS, assert_planned_peak_holds, run_graph
from tests.engine.autodiff.calls.asking import Net, kind
from tests.engine.ops.run import Array

RNG = np.random.default_rng(0)
ATTRS: Final = [{"scale": 0.8, "causal": False}, {"scale": 0.6, "causal": True}]


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute all attention in tiles of a few scores."""
    monkeypatch.setattr(attention, "HELD_SCORE_BYTES", 0)
    monkeypatch.setattr(attention, "HELD_SCORES_PER_ELEMENT", 0)
    monkeypatch.setattr(score_tiles, "TILE_BYTES", 8 * 40)
    monkeypatch.setattr(score_tiles, "LEAST_ROWS", 3)
    monkeypatch.setattr(score_tiles, "MOST_COLUMNS", 4)


small: Final = pytest.mark.usefixtures("_small")


def operands(op: ScoreOp, mask: str) -> list[Array]:
    """Return unrelated random operands: the ops treat them as independent."""
    shapes = {"q": (2, 5, 3), "k": (7, 3), "v": (2, 1, 7, 2), "lse": (2, 2, 5, 1), "delta": (2, 2, 5, 1)}
    floats = [RNG.normal(size=shapes.get(name, (2, 2, 5, 2))) for name in op.operands[:-1]]
    masks = {"none": [], "added": [RNG.normal(size=(2, 1, 7))], "keep": [RNG.random((5, 7)) < 0.7]}
    masks["keep"][0][:, 0] = True
    return [*floats, *masks[mask]]


USES: Final = [
    pytest.param(op, mask, attrs, id=f"{op.name}, {mask}{', causal' * attrs['causal']}")
    for op in (ROWS, GRADIENTS, MASK_GRADIENT)
    for mask in ("none", "added", "keep")
    for attrs in ATTRS
    if op is not MASK_GRADIENT or mask == "added"
]


def build(op: ScoreOp, arrays: list[Array], attrs: dict[str, Any]) -> tuple[Builder, list[Value], list[Value]]:
    """Return a builder with the op on leaves, the leaves, and the results."""
    builder = Builder(registry(), LIMITS)
    leaves = [builder.leaf(TensorType.of(x), i) for i, x in enumerate(arrays)]
    y = builder.emit(op, leaves, attrs)
    return builder, leaves, [y.output(i) for i in range(len(y.node.types))] if op.several else [y]


def graph_of(builder: Builder, outputs: list[Value]) -> Graph:
    graph = builder.graph(outputs)
    verify(graph)
    return graph


@small
@pytest.mark.parametrize(("op", "mask", "attrs"), USES)
def test_op_matches_its_decomposition(op: ScoreOp, mask: str, attrs: dict[str, Any]) -> None:
    arrays = operands(op, mask)
    builder, leaves, results = build(op, arrays, attrs)
    decomposed = op.written_out(*leaves, **attrs)
    actual = run_graph(graph_of(builder, [*results, *decomposed]), dict(enumerate(arrays)))
    for tiled, whole in zip(actual[: len(results)], actual[len(results) :], strict=True):
        np.testing.assert_allclose(tiled, whole, 1e-10, 1e-12)


@small
@pytest.mark.parametrize(("op", "mask", "attrs"), USES)
def test_gradients_match_finite_differences(op: ScoreOp, mask: str, attrs: dict[str, Any]) -> None:
    """The rule, from all results and from each alone, against central differences in a random direction."""
    arrays = operands(op, mask)
    builder, leaves, results = build(op, arrays, attrs)
    values, feeds = graph_of(builder, results), dict(enumerate(arrays))
    seeds = [RNG.normal(size=y.shape) for y in results]
    directions = {i: RNG.normal(size=x.shape) for i, x in feeds.items() if x.dtype == float}
    ends = {
        (i, h): run_graph(values, {**feeds, i: feeds[i] + h * d}) for i, d in directions.items() for h in (1e-5, -1e-5)
    }
    for subset in {(*range(len(results)),), *((k,) for k in range(len(results)))}:
        gradients = vjp(builder, [(results[k], builder.constant(seeds[k])) for k in subset], leaves)
        inputs = [i for i in directions if gradients[i] is not None]
        assert inputs == list(directions)
        actual = run_graph(graph_of(builder, [g for g in gradients if g is not None]), feeds)
        for i, gradient in zip(inputs, actual, strict=True):
            difference = sum(((ends[i, 1e-5][k] - ends[i, -1e-5][k]) * seeds[k]).sum() for k in subset)
            np.testing.assert_allclose((gradient * directions[i]).sum(), difference / 2e-5, 1e-6, 1e-8)


@small
@pytest.mark.parametrize(("op", "mask", "attrs"), USES)
@pytest.mark.parametrize("which", ["first", "last", "all"])
def test_vmap_matches_a_loop(op: ScoreOp, mask: str, attrs: dict[str, Any], which: str) -> None:
    arrays = operands(op, mask)
    mapped = {"first": {0}, "last": {len(arrays) - 1}, "all": set(range(len(arrays)))}[which]
    many = [np.stack([np.roll(x, s, axis=-2) for s in range(3)]) if i in mapped else x for i, x in enumerate(arrays)]
    builder, _, results = build(op, arrays, attrs)
    graph = graph_of(builder, results)
    actual = run_graph(vmap(graph, mapped, 3), dict(enumerate(many)))
    for i in range(3):
        single = run_graph(graph, {j: x[i] if j in mapped else x for j, x in enumerate(many)})
        for batch, one in zip(actual, single, strict=True):
            np.testing.assert_allclose(batch[i], one, 1e-10, 1e-12)


def network(mask: bool) -> tuple[Net, int, list[int]]:
    """Build a loss of attention between rows of one input and its weights."""
    net = Net()
    x, w = net.leaf(RNG.normal(size=(9, 3))), net.leaf(RNG.normal(size=(3, 3)))
    bias = [net.leaf(RNG.normal(size=(9, 9)))] if mask else []
    y = net.add("attention", net.add("matmul", x, w), x, net.add("tanh", x), *bias, causal=not mask)
    return net, net.add("mean", net.add("square", y)), [x, w, *bias]


@small
@pytest.mark.parametrize("mask", [False, True])
def test_second_derivative_calls_match_each_other(mask: bool) -> None:
    net, loss, wrt = network(mask)
    tangents = {node: RNG.normal(size=net.feeds[node].shape) for node in wrt}
    types, tangent_feeds = net.given("tangents", tangents)
    vectors, vector_feeds = net.given("vectors", tangents)
    hessian = kind(net.ask(Hessian.of_program(net.program, loss, wrt[:2])), "hessian")
    pushed = kind(net.ask(JVP.of_program(net.program, types, [loss]), tangent_feeds), "tangents")
    products = kind(net.ask(HVP.along(net.program, vectors, loss, wrt), vector_feeds), "hvp")
    first = {0: gradients(net, loss, wrt)}
    for step in (1e-5, -1e-5):
        moved = Net(net.statements, {i: x + step * tangents[i] for i, x in net.feeds.items()})
        first[1 if step > 0 else -1] = gradients(moved, loss, wrt)
    slope = sum(float((first[0][x,] * tangents[x]).sum()) for x in wrt)
    np.testing.assert_allclose(pushed[(loss,)], slope, 1e-9)
    for x in wrt:
        np.testing.assert_allclose(products[(x,)], (first[1][x,] - first[-1][x,]) / 2e-5, 1e-5, 1e-7)
    if not mask:
        whole = sum(np.tensordot(hessian[(wrt[0], x)], tangents[x], tangents[x].ndim) for x in wrt)
        np.testing.assert_allclose(whole, products[(wrt[0],)], 1e-9, 1e-11)


def gradients(net: Net, loss: int, wrt: list[int]) -> dict[tuple[int, ...], Array]:
    return kind(net.ask(Gradients.of_program(net.program, loss, wrt)), "gradients")


@small
@pytest.mark.parametrize("mask", [False, True])
def test_exported_gradients_use_public_ops_only(mask: bool) -> None:
    net, loss, wrt = network(mask)
    exported = export_gradients(net.program, net.types, Gradients.of_program(net.program, loss, wrt), Limits())
    assert {statement.op for statement in exported.statements} <= set(registry().ops.values())
    actual = Net(list(exported.statements), net.feeds).values(*dict(exported.gradients).values())
    for gradient, expected in zip(actual, gradients(net, loss, wrt).values(), strict=True):
        np.testing.assert_allclose(gradient, expected, 1e-9, 1e-12)


@small
def test_forward_over_reverse_matches_reverse_over_reverse() -> None:
    """Forward over reverse equals reverse over reverse if all results of the ops are read."""
    arrays = operands(ROWS, "added")
    builder, leaves, results = build(ROWS, arrays, ATTRS[0])
    seeds = [(y, builder.constant(RNG.normal(size=y.shape))) for y in results]
    first = [g for g in vjp(builder, seeds, leaves) if g is not None]
    directions = [builder.constant(RNG.normal(size=x.shape)) for x in leaves]
    forward = [t for t in jvp(builder, first, list(zip(leaves, directions, strict=True))) if t is not None]
    reverse = [g for g in vjp(builder, list(zip(first, directions, strict=True)), leaves) if g is not None]
    actual = run_graph(graph_of(builder, [*forward, *reverse]), dict(enumerate(arrays)))
    for pushed, pulled in zip(actual[:4], actual[4:], strict=True):
        np.testing.assert_allclose(pushed, pulled, 1e-9, 1e-11)


def plan_of(*arrays: TensorType, differentiated: bool, **attrs: Any) -> Any:
    """Return the plan of attention's value, or of all gradients of its sum."""
    ops, n = registry().ops, len(arrays)
    statements = [Statement(ops["input"])] * n
    statements += [Statement(ops["attention"], tuple(range(n)), attrs), Statement(ops["sum"], (n,))]
    program, types = Program(registry(), statements), dict(enumerate(arrays))
    compiler = Compiler(Limits())
    wrt = [i for i, x in enumerate(arrays) if x.is_float][:3]
    compiled = compiler.gradients(program, types, wrt=wrt) if differentiated else compiler.forward(program, types)
    return compiled.plan


def test_peak_memory_is_far_below_the_score_matrix() -> None:
    """8 heads of 4,096 tokens: 512 MiB of scores."""
    x = TensorType((1, 8, 4096, 64), np.dtype("float32"))
    mask = TensorType((4096, 4096), np.dtype("float32"))
    scores = 8 * 4096 * 4096 * 4
    assert plan_of(x, x, x, differentiated=False).peak_bytes < scores / 8
    assert plan_of(x, x, x, differentiated=True, causal=True).peak_bytes < scores / 5
    assert plan_of(x, x, x, mask, differentiated=True).peak_bytes < scores / 5 + mask.nbytes


def test_small_attention_stores_its_scores() -> None:
    x = TensorType((8, 256, 64), np.dtype("float32"))
    assert "softmax" in [step.op.name for step in plan_of(x, x, x, differentiated=False).steps]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "shape", "mask", "causal"),
    [
        ("float32", (8, 1024, 256), None, True),
        ("float64", (2, 2, 1024, 64), "bool", False),
        ("float16", (8, 1024, 32), "float16", False),
    ],
)
def test_memory_stays_within_plan(dtype: str, shape: tuple[int, ...], mask: str | None, causal: bool) -> None:
    arrays = [RNG.normal(size=shape).astype(dtype) for _ in "qkv"]
    arrays += [] if mask is None else [(RNG.normal(size=(1024, 1024)) > 0).astype(mask)]
    for differentiated in (False, True):
        plan = plan_of(*map(TensorType.of, arrays), differentiated=differentiated, causal=causal)
        assert any(isinstance(step.op, ScoreOp) for step in plan.steps)
        assert_planned_peak_holds(plan, dict(enumerate(arrays)))


@small
@pytest.mark.parametrize("causal", [False, True])
def test_second_derivatives_ignore_queries_without_keys(monkeypatch: pytest.MonkeyPatch, causal: bool) -> None:
    """NaN appears only where the formula has it."""
    net = Net()
    q, k, v = (net.leaf(RNG.normal(size=(5, 2))) for _ in "qkv")
    keep = np.arange(5)[:, None] + 0 * np.arange(5) != 3
    y = net.add("attention", q, k, v, net.leaf(keep, "input"), causal=causal)
    shown = net.add("where", net.leaf(keep[:, :1], "input"), y, net.leaf(np.zeros((5, 2)), "input"))
    loss = net.add("sum", net.add("square", shown))
    vectors, vector_feeds = net.given("vectors", {x: RNG.normal(size=(5, 2)) for x in (q, k)})
    actual = kind(net.ask(HVP.along(net.program, vectors, loss, [q, k]), vector_feeds), "hvp")
    monkeypatch.setattr(attention, "HELD_SCORE_BYTES", np.inf)
    expected = kind(net.ask(HVP.along(net.program, vectors, loss, [q, k]), vector_feeds), "hvp")
    for x in (q, k):
        np.testing.assert_allclose(actual[(x,)], expected[(x,)], 1e-9, 1e-11)
    assert np.isfinite(actual[(q,)]).all()


@small
def test_query_without_keys_does_not_affect_cotangents() -> None:
    """Its log-sum and δ are NaN, like its row of the result."""
    arrays = operands(GRADIENTS, "keep")
    arrays[6][3] = False
    for row in arrays[3:5]:
        row[..., 3, :] = np.nan
    builder, leaves, results = build(GRADIENTS, arrays, ATTRS[0])
    seeds = [(y, builder.constant(RNG.normal(size=y.shape))) for y in results[:2]]
    by_q, by_k = (g for g in vjp(builder, seeds, leaves[:2]) if g is not None)
    for actual in run_graph(graph_of(builder, [by_q, by_k]), dict(enumerate(arrays))):
        assert np.isfinite(actual).all()
