"""Origin of NaN and infinity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Batch, Call, Compiler, Gradients, NonfiniteWatch, Values
from engine.analysis.diagnose import Nonfinite
from engine.compiler.compiler import CompileRequest, plan_call
from tests.contract.cases import EXECUTOR, LIMITS
from tests.engine.autodiff.calls.asking import Net
from tests.engine.looping import Write, Writer, written

INF = float("inf")


def first_nonfinite(net: Net, call: Call | None = None, **extra_feeds: Any) -> Nonfinite | None:
    program = net.program
    _, plan = plan_call(CompileRequest(program, net.types, call or Values.of_program(program), LIMITS))
    feeds: Any = {**net.feeds, **{(role, node): a for role, (node, a) in extra_feeds.items()}}
    watch = NonfiniteWatch(program, feeds, plan, EXECUTOR)
    EXECUTOR.run(plan, feeds, watch=watch)
    return watch.first_nonfinite


def test_first_nonfinite_node_and_its_operands() -> None:
    net = Net()
    x = net.leaf([0.0, 4.0])
    y = net.add("log", net.add("mul_scalar", x, scalar=0.5))
    net.add("sum", net.add("exp", net.add("neg", y)))
    assert first_nonfinite(net) == Nonfinite(y, "log", False, "log", ((0.0, 2.0),))


def test_nonfinite_in_the_backward_pass() -> None:
    net = Net()
    x = net.leaf([0.0, 4.0])
    root = net.add("sqrt", x)
    loss = net.add("sum", root)
    finding = first_nonfinite(net, Gradients.of_program(net.program, loss))
    assert finding is not None
    assert finding[:3] == (root, "sqrt", True)
    assert first_nonfinite(net) is None, "forward, all is finite"


def test_nonfinite_feed() -> None:
    net = Net()
    net.leaf([1.0])
    x = net.leaf([1.0, INF])
    net.add("add", 0, x)
    assert first_nonfinite(net) == Nonfinite(x, "parameter", False, "parameter", ())


def test_nonfinite_cotangent() -> None:
    net = Net()
    x = net.leaf([1.0, 2.0])
    y = net.add("square", x)
    cotangent = np.array([1.0, np.nan])
    types, _ = net.given("cotangents", {y: cotangent})
    call = Gradients.of_program(net.program, y, [x], None, types[0][1])
    assert first_nonfinite(net, call, cotangents=(y, cotangent)) == Nonfinite(y, "square", False, "cotangents", ())


@pytest.mark.parametrize(
    ("make", "computed"),
    [
        (lambda net: net.add("log", net.add("full", shape=[2], fill=0.0)), "log"),
        (lambda net: net.add("log", net.add("constant", value=np.array([1.0, 0.0]))), "log"),
        (lambda net: net.add("mean", net.add("full", shape=[0])), "mean"),
    ],
)
def test_nonfinite_from_constants(make: Any, computed: str) -> None:
    """Constant folding does not hide it."""
    net = Net()
    node = make(net)
    finding = first_nonfinite(net)
    assert finding is not None
    assert (finding.node, finding.computed) == (node, computed)


def test_nonfinite_constant() -> None:
    net = Net()
    stated = net.add("constant", value=np.array([1.0, -INF]))
    net.add("exp", net.add("neg", stated))
    assert first_nonfinite(net) == Nonfinite(stated, "constant", False, "constant", ())


def attending(mask: Any) -> Net:
    net = Net()
    x = net.leaf(np.arange(6.0).reshape(3, 2) / 6)
    masks = [net.add("constant", value=np.asarray(mask, bool))] if mask is not None else []
    net.add("sum", net.add("attention", x, x, x, *masks, causal=mask is None))
    return net


@pytest.mark.parametrize("mask", [None, np.tri(3)])
def test_infinities_of_masks_are_not_reported(mask: Any) -> None:
    net = attending(mask)
    assert first_nonfinite(net) is None
    assert first_nonfinite(net, Gradients.of_program(net.program)) is None


def test_query_without_keys_is_reported() -> None:
    net = attending(np.diag([0, 1, 1]))
    finding = first_nonfinite(net)
    assert finding is not None
    assert (finding.op, finding.computed) == ("attention", "softmax")
    assert finding.ranges[0] is not None
    assert finding.ranges[0][0] == -INF


def test_nonfinite_in_a_batch_and_in_one_of_several_results() -> None:
    net = Net()
    x = net.leaf(np.array([[1.0, 2.0], [0.0, 2.0]]))
    parts = net.add("split", x, sizes=[1, 1], axis=0)
    y = net.add("reciprocal", net.add("get_output", parts, index=0))
    loss = net.add("sum", y)
    finding = first_nonfinite(net, Batch.of_program(net.program, net.types, [x], loss, [x]))
    assert finding is not None
    assert (finding.node, finding.backward, finding.ranges) == (y, False, ((0.0, 1.0),))


# ---------------------------------------------------------------- functions


def first_nonfinite_of(write: Write, *arrays: Any, differentiated: bool = False) -> Nonfinite | None:
    asked = written(write, *arrays, floats=None if differentiated else ())
    call = Gradients.of_program(asked.program) if differentiated else Values.of_program(asked.program, asked.results)
    plan = Compiler(asked.program.limits).compile(asked.program, asked.types, call, node_by_node=True).plan
    watch = NonfiniteWatch(asked.program, asked.feeds, plan, EXECUTOR)
    EXECUTOR.run(plan, {feed: asked.feeds[feed] for feed in plan.feeds}, watch=watch)
    return watch.first_nonfinite


def falling(g: Writer, x: int) -> list[int]:
    """x − 1 at node 1, and its logarithm at node 2."""
    less = g.add_scalar(x, scalar=-1.0)
    return [less, g.log(less)]


def positive(g: Writer, x: int) -> list[int]:
    return [g.greater(x, g.number(-5.0))]


def logarithm(g: Writer, x: int) -> list[int]:
    return [g.log(x)]


def rising(g: Writer, x: int) -> list[int]:
    return [g.add_scalar(g.mul(x, x), scalar=1.0)]


#: programs of one number, the number, the op in the graph, the function, its node, and the steps
WITHIN: dict[str, tuple[Write, float, str, int, int, tuple[int, ...]]] = {
    "scan": (lambda g, x: g.scan(x, body=falling, carries=1, length=6), 3.0, "scan", 0, 2, (2,)),
    "reverse": (lambda g, x: g.scan(x, body=falling, carries=1, length=6, reverse=True), 3.0, "scan", 0, 2, (3,)),
    "while": (
        lambda g, x: g.while_(x, condition=positive, body=lambda g, x: [g.mul(x, x)], carries=1, max_steps=20),
        10.0, "while", 0, 1, (8,),
    ),
    "call": (lambda g, x: g.call(x, body=logarithm), 0.0, "call", 0, 1, ()),
    "recompute": (lambda g, x: g.call(x, body=logarithm, recompute=True), 0.0, "call", 0, 1, ()),
    "cond": (
        lambda g, x: g.cond(g.less(x, g.number(1.0)), x, then=logarithm, otherwise=rising), 0.0, "cond", 0, 1, (),
    ),
    "map": (lambda g, x: g.map(g.broadcast_to(x, shape=[3]), body=logarithm, sequences=1), 0.0, "map", 0, 1, ()),
    "batches of a map": (
        lambda g, x: g.map(g.broadcast_to(x, shape=[3]), body=logarithm, sequences=1, at_once=1),
        0.0, "map", 0, 1, (),
    ),
    "fixed_point": (
        lambda g, x: g.fixed_point(x, body=rising, carries=1, tolerance=0.0, max_steps=20)[:1],
        2.0, "fixed_point", 0, 1, (9,),
    ),
    "nested": (
        lambda g, x: g.scan(
            x, body=lambda g, x: g.scan(x, body=falling, carries=1, length=2), carries=1, length=6
        ),
        3.0, "scan", 0, 2, (1, 0),
    ),
    "a call in a loop": (
        lambda g, x: g.scan(
            x, body=lambda g, x: [g.add_scalar(x, scalar=-1.0), *g.call(x, body=logarithm)], carries=1, length=6
        ),
        3.0, "scan", 0, 1, (3,),
    ),
    "a loop in a call": (
        lambda g, x: g.call(x, body=lambda g, x: g.scan(x, body=falling, carries=1, length=6)), 3.0, "call", 0, 2, (2,),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WITHIN)
def test_nonfinite_inside_a_function(case: str) -> None:
    write, x, op, function, node, steps = WITHIN[case]
    finding = first_nonfinite_of(write, x)
    assert finding is not None
    assert (finding.op, finding.function, finding.function_node, finding.steps) == (op, function, node, steps)


def test_nonfinite_in_the_backward_pass_of_a_loop() -> None:
    """The derivative of the root at 0, reached one step before the last; the value is finite."""

    def write(g: Writer, x: int) -> list[int]:
        return g.scan(x, body=lambda g, x: [g.sqrt(g.add_scalar(x, scalar=-2.0))], carries=1, length=3)

    assert first_nonfinite_of(write, 38.0) is None
    finding = first_nonfinite_of(write, 38.0, differentiated=True)
    assert finding is not None
    assert (finding.backward, finding.function, finding.function_node, finding.steps) == (True, 0, 2, (2,))


def test_backward_step_of_a_while_is_its_forward_step() -> None:
    def write(g: Writer, x: int) -> list[int]:
        roots = {"condition": lambda g, x: [g.greater(x, g.number(0.0))], "body": root, "carries": 1}
        return g.while_(x, max_steps=20, **roots)[:1]

    def root(g: Writer, x: int) -> list[int]:
        return [g.sqrt(g.add_scalar(x, scalar=-2.0))]

    finding = first_nonfinite_of(write, 38.0, differentiated=True)
    assert finding is not None
    assert (finding.node, finding.backward, finding.function_node, finding.steps) == (1, True, 2, (2,))


def test_infinity_constant_in_a_function() -> None:
    def write(g: Writer, x: int) -> list[int]:
        return g.scan(x, body=lambda g, x: [g.maximum(x, g.number(INF))], carries=1, length=2)

    finding = first_nonfinite_of(write, 1.0)
    assert finding is not None
    assert (finding.op, finding.computed, finding.function_node, finding.steps) == ("scan", "constant", 1, (0,))


def test_nonfinite_operand_of_a_loop_is_not_blamed_on_it() -> None:
    def write(g: Writer, x: int) -> list[int]:
        return g.scan(g.log(x), body=lambda g, x: [g.add_scalar(x, scalar=1.0)], carries=1, length=2)

    finding = first_nonfinite_of(write, 0.0)
    assert finding is not None
    assert (finding.op, finding.function) == ("log", None)


def test_watching_does_not_change_results() -> None:
    asked = written(lambda g, x: g.scan(x, body=falling, carries=1, length=6), 3.0, floats=())
    plan = Compiler(asked.program.limits).forward(asked.program, asked.types, asked.results).plan
    watch = NonfiniteWatch(asked.program, asked.feeds, plan, EXECUTOR)
    actual = EXECUTOR.run(plan, asked.feeds, watch=watch)
    for x, y in zip(actual, EXECUTOR.run(plan, asked.feeds), strict=True):
        np.testing.assert_array_equal(x, y)
