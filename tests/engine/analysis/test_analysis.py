"""Cost analysis of calls: counted by hand, equal to the plan that runs, and never below the measurement."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from engine import (
    HVP,
    JVP,
    VJP,
    Analysis,
    Batch,
    Call,
    Gradients,
    Hessian,
    Jacobian,
    Limits,
    TensorType,
    Values,
    analyse,
    registry,
)
from engine.compiler.compiler import CompileRequest, plan_call
from engine.ir.errors import EngineError
from tests.contract.cases import EXECUTOR, LIMITS, assert_planned_peak_holds
from tests.engine.autodiff.calls.asking import Net
from tests.engine.looping import Write, Writer, Written, written
from tests.sampling import together

FLOAT64 = np.dtype("float64")


#: ops with one operand and no required attributes
UNARY_OPS = [
    name
    for name, op in registry().ops.items()
    if len(op.operands) == 1 and op.samples and not op.several and not any(a.required for a in op.attrs.values())
]


def layers(rows: int, inner: int, columns: int) -> tuple[Net, int, int]:
    """Build max(tanh(x W) V); return the net, the node of W and the loss. With a sum, products would be of sums."""
    net = Net()
    x = net.leaf(np.full((rows, 4), 0.1), "input")
    w, v = net.leaf(np.full((4, inner), 0.2)), net.leaf(np.full((inner, columns), 0.3))
    net.add("matmul", net.add("tanh", net.add("matmul", x, w)), v)
    return net, w, net.add("max", net.last)


def test_node_shapes_and_flops_by_hand() -> None:
    net, w, loss = layers(2, 3, 5)
    analysis = analyse(CompileRequest(net.program, net.types, Gradients.of_program(net.program, loss, [w]), LIMITS))
    shapes = {cost.node: cost.type.shape for cost in analysis.nodes}
    assert shapes == {0: (2, 4), 1: (4, 3), 2: (3, 5), 3: (2, 3), 4: (2, 3), 5: (2, 5), 6: ()}
    first, second = 2 * 2 * 4 * 3, 2 * 2 * 3 * 5
    values = analyse(CompileRequest(net.program, net.types, Values.of_program(net.program), LIMITS))
    tanh = values.nodes[4].flops
    assert [cost.flops for cost in values.nodes] == [0, 0, 0, first, tanh, second, 10]
    assert values.forward_flops == first + tanh + second + 10
    assert values.backward_flops == values.saved_bytes == 0
    # In the backward pass, dV is not requested; the derivative of tanh needs its own result, which the forward pass
    # saves; and that of the maximum needs its operand and its result.
    assert analysis.saved_bytes == (2 * 3 + 2 * 5 + 1) * 8
    assert analysis.backward_flops >= first + second
    assert analysis.forward_flops + analysis.backward_flops == sum(cost.flops for cost in analysis.nodes)


def calls(net: Net, w: int, loss: int) -> list[Call]:
    program, y = net.program, loss - 1
    w_type, y_type = net.types[w], TensorType(net.values(y)[0].shape, FLOAT64)
    return [
        Values.of_program(program, [y]),
        Gradients.of_program(program, loss),
        VJP.of_program(program, ((y, y_type),), [w], [y]),
        JVP.of_program(program, ((w, w_type),), [y]),
        Jacobian.of_program(program, [w], [y]),
        HVP.along(program, ((w, w_type),), loss, [w]),
        Hessian.of_program(program, loss, [w]),
    ]


@pytest.mark.parametrize("which", range(7))
def test_analysis_matches_the_plan(which: int) -> None:
    net, w, loss = layers(2, 3, 5)
    call = calls(net, w, loss)[which]
    _, plan = plan_call(CompileRequest(net.program, net.types, call, LIMITS))
    analysis = analyse(CompileRequest(net.program, net.types, call, LIMITS))
    assert analysis.peak_bytes == plan.peak_bytes
    assert analysis.result_types == plan.result_types
    assert analysis.forward_flops + analysis.backward_flops == plan.flops
    assert analysis.within


def test_shapes_of_tangents_are_not_checked() -> None:
    net, w, loss = layers(2, 3, 5)
    matching = calls(net, w, loss)[5]
    other = HVP.along(net.program, ((w, TensorType((), FLOAT64)),), loss, [w])
    assert analyse(CompileRequest(net.program, net.types, other, LIMITS)) == analyse(
        CompileRequest(net.program, net.types, matching, LIMITS)
    )


def test_batch_is_planned_for_all_examples() -> None:
    net, w, loss = layers(2, 3, 5)
    many = Net(net.statements, {**net.feeds, 0: np.zeros((7, 2, 4))})
    call = Batch.of_program(many.program, many.types, [0], loss, [w])
    analysis = analyse(CompileRequest(many.program, many.types, call, LIMITS))
    assert analysis.result_types == (TensorType((7,), FLOAT64), TensorType((7, 4, 3), FLOAT64))
    assert [cost.type.shape for cost in analysis.nodes][:2] == [(2, 4), (4, 3)], "the graph is written for one example"
    assert analysis.peak_bytes == plan_call(CompileRequest(many.program, many.types, call, LIMITS))[1].peak_bytes


def test_analysis_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("executed")

    net, w, loss = layers(2, 3, 5)
    all_calls = calls(net, w, loss)
    monkeypatch.setattr(type(EXECUTOR), "execute", forbidden)
    for call in all_calls:
        analyse(CompileRequest(net.program, net.types, call, LIMITS))


@pytest.mark.parametrize("limits", [Limits(bytes=1000), Limits(flops=1000)], ids=["bytes", "FLOPs"])
def test_over_budget_call_is_analysed_and_reported(limits: Limits) -> None:
    net, w, loss = layers(20, 3, 5)
    for call in calls(net, w, loss):
        analysis = analyse(CompileRequest(net.program, net.types, call, limits))
        unlimited = analyse(CompileRequest(net.program, net.types, call, LIMITS))
        assert analysis.forward_flops == unlimited.forward_flops
        assert (analysis.within, unlimited.within) == (False, True)
        with pytest.raises(EngineError) as caught:
            plan_call(CompileRequest(net.program, net.types, call, limits))
        assert caught.value.code == "over_budget"


@pytest.mark.parametrize("extent", [2**20, 2**40])
def test_call_beyond_any_memory_is_analysed(extent: int) -> None:
    net, w, loss = layers(2, 3, 5)
    types = {node: TensorType((extent, extent), FLOAT64) for node in range(3)}
    analysis = analyse(CompileRequest(net.program, types, Gradients.of_program(net.program, loss, [w]), LIMITS))
    assert not analysis.within
    assert analysis.forward_flops > 4 * extent**3


def test_jacobian_without_a_path_has_no_sweep() -> None:
    """No differentiable path, and more rows than can be counted: nothing is swept."""
    net = Net()
    x = net.leaf(1.0)
    y = net.add("ceil", x)
    call = Jacobian.of_program(net.program, [x], [y])
    assert not analyse(CompileRequest(net.program, {x: TensorType((2**62,), FLOAT64)}, call, LIMITS)).within


def test_empty_shape_with_huge_extents() -> None:
    net = Net()
    x = net.leaf(1.0)
    loss = net.add("sum", net.add("tanh", x))
    analysis = analyse(
        CompileRequest(
            net.program,
            {x: TensorType((0, 2**40, 2**40), FLOAT64)},
            Gradients.of_program(net.program, loss, [x]),
            LIMITS,
        )
    )
    assert not analysis.within


@together
@pytest.mark.parametrize("shape", [(2**31, 2**40), (2**62,), (2**20, 0, 2**62)], ids=str)
@pytest.mark.parametrize("name", UNARY_OPS)
def test_gradients_of_uncountable_shapes(name: str, shape: tuple[int, ...]) -> None:
    net = Net()
    x = net.leaf(1.0)
    y = net.add(name, x)
    call = VJP.of_program(net.program, ((y, TensorType((), FLOAT64)),), [x])
    with suppress(EngineError):
        assert not analyse(CompileRequest(net.program, {x: TensorType(shape, FLOAT64)}, call, LIMITS)).within


def test_jacobian_beyond_any_memory_is_analysed() -> None:
    net = Net()
    x = net.leaf(1.0)
    y = net.add("tanh", x)
    call = Jacobian.of_program(net.program, [x], [y])
    analysis = analyse(CompileRequest(net.program, {x: TensorType((2**31,), FLOAT64)}, call, LIMITS))
    assert not analysis.within
    assert analysis.peak_bytes >= 8 * 2**62
    with pytest.raises(EngineError, match="at most 2\\^53 rows"):
        analyse(CompileRequest(net.program, {x: TensorType((2**54,), FLOAT64)}, call, LIMITS))


@pytest.mark.slow
def test_sweep_is_chunked_to_fit_the_budget() -> None:
    """The analysis is of the chunks that run, and the results equal those of one chunk."""
    net = Net()
    x = net.leaf(np.linspace(-1, 1, 300))
    y = net.leaf(np.ones(300), "input")
    for _ in range(4):
        y = net.add("mul", net.add("sin", net.add("add", x, y)), net.add("cos", x))
    call = Jacobian.of_program(net.program, [x], [y])
    unlimited = plan_call(CompileRequest(net.program, net.types, call, LIMITS, kernel_threads=0))[1]
    result = 300 * 300 * 8
    limits = Limits(bytes=max(3 * result, unlimited.peak_bytes * 3 // 4))
    plan = plan_call(CompileRequest(net.program, net.types, call, limits, kernel_threads=0))[1]
    assert plan.peak_bytes <= limits.bytes < unlimited.peak_bytes
    analysis = analyse(CompileRequest(net.program, net.types, call, limits, kernel_threads=0))
    assert (analysis.peak_bytes, analysis.within) == (plan.peak_bytes, True)
    for a, b in zip(EXECUTOR.run(plan, net.feeds), EXECUTOR.run(unlimited, net.feeds), strict=True):
        np.testing.assert_array_equal(a, b)


def test_nodes_that_stop_gradients() -> None:
    net = Net()
    x = net.leaf([1.5, 2.5])
    floor = net.add("floor", x)
    above = net.add("greater", floor, x)
    stopped = net.add("stop_gradient", x)
    chosen = net.add("where", above, floor, net.add("add", x, stopped))
    elsewhere = net.add("floor", net.add("full", shape=[2], fill=1.0))
    loss = net.add("sum", net.add("mul", chosen, elsewhere))
    analysis = analyse(CompileRequest(net.program, net.types, Gradients.of_program(net.program, loss, [x]), LIMITS))
    assert analysis.stops_gradient == (floor, above, stopped), "not where nothing that is differentiated by is read"
    analysis = analyse(
        CompileRequest(net.program, net.types, Gradients.of_program(net.program, loss, [x, floor]), LIMITS)
    )
    assert analysis.stops_gradient == (above, stopped), "nor at what is differentiated by itself"


def large() -> list[tuple[str, Net, Any]]:
    net, _, loss = layers(1000, 1000, 1000)
    wide = Net(net.statements, {**net.feeds, 0: np.full((1000, 1000), 0.01), 1: np.full((1000, 1000), 0.02)})
    block = Net()
    x = block.leaf(np.linspace(-1, 1, 1000))
    first, second = (block.leaf(np.full((1000, 1000), s / 1000), "input") for s in (1.0, -2.0))
    y = block.add("matmul", second, block.add("tanh", block.add("matmul", first, x)))
    return [
        ("gradients", wide, Gradients.of_program(wide.program, loss)),
        ("a block of 1,000 by 1,000", block, Jacobian.of_program(block.program, [x], [y])),
    ]


@pytest.mark.slow
@pytest.mark.skipif(EXECUTOR.device != "cpu", reason="measures what NumPy allocates")
@pytest.mark.parametrize(("net", "call"), [pytest.param(n, c, id=name) for name, n, c in large()])
def test_estimate_is_within_a_tenth_of_the_measured_peak(net: Net, call: Call) -> None:
    """A Jacobian of a million elements in one request, within the estimated memory."""
    plan = plan_call(CompileRequest(net.program, net.types, call, LIMITS))[1]
    assert analyse(CompileRequest(net.program, net.types, call, LIMITS)).peak_bytes == plan.peak_bytes
    assert plan.peak_bytes < 200_000_000
    EXECUTOR.run(plan, net.feeds)
    assert_planned_peak_holds(plan, net.feeds)


# ---------------------------------------------------------------- functions


def analyse_functions(write: Write, *arrays: Any, differentiated: bool = True) -> tuple[Analysis, Written]:
    asked = written(write, *arrays, floats=None if differentiated else ())
    program = asked.program
    call = Gradients.of_program(program) if differentiated else Values.of_program(program, asked.results)
    return analyse(CompileRequest(program, asked.types, call, Limits())), asked


def costly(g: Writer, x: int) -> list[int]:
    """12,000 FLOPs."""
    return [g.sum(g.sin(g.add(x, g.number(np.arange(1000.0)))))]


def costly_loop(g: Writer, x: int) -> list[int]:
    return list(g.scan(x, body=costly, carries=1, length=2))


def negative(g: Writer, x: int) -> list[int]:
    return [g.less(x, g.number(0.0))]


ONCE = 12_000
#: programs that run functions of one number, and how often their body runs
RUNS: dict[str, tuple[Write, int]] = {
    "scan": (lambda g, x: g.scan(x, body=costly, carries=1, length=50), 50),
    "nested": (lambda g, x: g.scan(x, body=costly_loop, carries=1, length=10), 20),
    "call": (lambda g, x: g.call(x, body=costly), 1),
    "a call of a loop": (lambda g, x: g.call(x, body=costly_loop), 2),
    "recomputed": (lambda g, x: g.call(x, body=costly, recompute=True), 1),
    "while": (lambda g, x: g.while_(x, condition=negative, body=costly, carries=1, max_steps=7)[:1], 7),
    "fixed_point": (lambda g, x: g.fixed_point(x, body=costly, carries=1, tolerance=0.1, max_steps=7)[:1], 7),
}


@pytest.mark.parametrize("differentiated", [False, True])
@pytest.mark.parametrize("case", RUNS)
def test_cost_of_functions_belongs_to_their_node(case: str, differentiated: bool) -> None:
    write, runs = RUNS[case]
    analysis, asked = analyse_functions(write, 0.5, differentiated=differentiated)
    assert sum(one.flops for one in analysis.nodes) == analysis.forward_flops + analysis.backward_flops
    costliest = max(analysis.nodes, key=lambda one: one.flops)
    if not differentiated:
        assert runs * ONCE <= costliest.flops < runs * ONCE * 1.05
    assert asked.program.statements[costliest.node].op.functions


@pytest.mark.parametrize("at_once", [{}, {"at_once": 1}, {"at_once": 3}])
def test_map_costs_its_entries(at_once: dict[str, int]) -> None:
    def write(g: Writer, x: int) -> list[int]:
        return list(g.map(x, body=costly, sequences=1, **at_once))

    analysis, _ = analyse_functions(write, np.linspace(0, 1, 8), differentiated=False)
    (spent,) = [one.flops for one in analysis.nodes if one.flops]
    assert 8 * ONCE <= spent < 8 * ONCE * 1.001


def test_cond_costs_its_costlier_branch() -> None:
    analysis, _ = analyse_functions(
        lambda g, p, x: g.cond(p, x, then=lambda g, x: [g.neg(x)], otherwise=costly), True, 0.5, differentiated=False
    )
    assert {one.node: one.flops for one in analysis.nodes if one.flops} == {2: ONCE}


def floored(g: Writer, *operands: int) -> list[int]:
    return [g.floor(operands[-1])]


def smooth(g: Writer, *operands: int) -> list[int]:
    return [g.sin(operands[-1])]


def straight(_: Writer, *operands: int) -> list[int]:
    return [operands[-1]]


#: programs of two numbers, and whether the op that runs functions stops the derivative with respect to the first
STOPPING: dict[str, tuple[Write, bool]] = {
    "call": (lambda g, x, _: g.call(x, body=floored), True),
    "nothing": (lambda g, x, _: g.call(x, body=smooth), False),
    "its own derivative": (lambda g, x, _: g.call(x, body=floored, derivative=straight), False),
    "a function of a function": (lambda g, x, _: g.call(x, body=lambda g, x: g.call(x, body=floored)), True),
    "a carry": (lambda g, x, _: g.scan(x, body=lambda g, x: [g.add(x, g.stop_gradient(x))], carries=1, length=2), True),
    "a carry, at the next step": (
        lambda g, x, y: g.scan(x, y, body=lambda g, x, y: [x, g.floor(y)], carries=2, length=2), True,
    ),
    "another operand": (
        lambda g, x, y: g.call(x, y, body=lambda g, x, y: [g.add(x, g.floor(y))]), False,
    ),
    "what no result needs": (lambda g, x, _: g.call(x, body=lambda g, x: [g.floor(x), g.sin(x)][1:]), False),
    "a condition": (
        lambda g, x, _: g.while_(x, condition=negative, body=smooth, carries=1, max_steps=3)[:1], False,
    ),
    "one of two": (lambda g, x, _: g.cond(g.number(True, "bool"), x, then=smooth, otherwise=floored), True),
    "a number of a sequence": (
        lambda g, x, _: g.map(g.stack(x, x, axis=0), body=lambda g, x: [g.cast(x, dtype="int64")], sequences=1), True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STOPPING)
def test_functions_that_stop_gradients(case: str) -> None:
    write, stops = STOPPING[case]
    asked = written(write, 0.5, 1.5)
    assert asked.total is not None
    call = Gradients.of_program(asked.program, asked.total, [0])
    analysis = analyse(CompileRequest(asked.program, asked.types, call, Limits()))
    runs = [i for i, statement in enumerate(asked.program.statements) if statement.op.functions]
    assert (runs[0] in analysis.stops_gradient) == stops
