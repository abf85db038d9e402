"""Where NaN and infinity come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Batch, Call, Gradients, NonfiniteWatch, Values
from engine.planning.compiler import plan_call
from engine.tools.diagnose import Nonfinite
from tests.contract.cases import EXECUTOR, LIMITS
from tests.engine.calls.asking import Net

INF = float("inf")


def watched(net: Net, call: Call | None = None, **beside: Any) -> Nonfinite | None:
    program = net.program
    _, plan = plan_call(program, net.types, call or Values.of_program(program), LIMITS)
    feeds: Any = {**net.feeds, **{(role, node): a for role, (node, a) in beside.items()}}
    watch = NonfiniteWatch(program, feeds, plan)
    EXECUTOR.run(plan, feeds, watch=watch)
    return watch.found


def test_the_first_node_that_makes_one_and_what_it_read() -> None:
    net = Net()
    x = net.leaf([0.0, 4.0])
    y = net.add("log", net.add("mul_scalar", x, scalar=0.5))
    net.add("sum", net.add("exp", net.add("neg", y)))
    assert watched(net) == Nonfinite(y, "log", False, "log", ((0.0, 2.0),))


def test_on_the_way_back() -> None:
    net = Net()
    x = net.leaf([0.0, 4.0])
    root = net.add("sqrt", x)
    loss = net.add("sum", root)
    found = watched(net, Gradients.of_program(net.program, loss))
    assert found is not None
    assert found[:3] == (root, "sqrt", True)
    assert watched(net) is None, "forward, all is finite"


def test_what_is_fed() -> None:
    net = Net()
    net.leaf([1.0])
    x = net.leaf([1.0, INF])
    net.add("add", 0, x)
    assert watched(net) == Nonfinite(x, "parameter", False, "parameter", ())


def test_a_cotangent() -> None:
    net = Net()
    x = net.leaf([1.0, 2.0])
    y = net.add("square", x)
    cotangent = np.array([1.0, np.nan])
    types, _ = net.given("cotangents", {y: cotangent})
    call = Gradients.of_program(net.program, y, [x], None, types[0][1])
    assert watched(net, call, cotangents=(y, cotangent)) == Nonfinite(y, "square", False, "cotangents", ())


@pytest.mark.parametrize(
    ("make", "computed"),
    [
        (lambda net: net.add("log", net.add("full", shape=[2], fill=0.0)), "log"),
        (lambda net: net.add("log", net.add("constant", value=np.array([1.0, 0.0]))), "log"),
        (lambda net: net.add("mean", net.add("full", shape=[0])), "mean"),
    ],
)
def test_what_constants_alone_give(make: Any, computed: str) -> None:
    """It is not folded away."""
    net = Net()
    node = make(net)
    found = watched(net)
    assert found is not None
    assert (found.node, found.computed) == (node, computed)


def test_what_the_graph_states() -> None:
    net = Net()
    stated = net.add("constant", value=np.array([1.0, -INF]))
    net.add("exp", net.add("neg", stated))
    assert watched(net) == Nonfinite(stated, "constant", False, "constant", ())


def attending(mask: Any) -> Net:
    net = Net()
    x = net.leaf(np.arange(6.0).reshape(3, 2) / 6)
    seen = [net.add("constant", value=np.asarray(mask, bool))] if mask is not None else []
    net.add("sum", net.add("attention", x, x, x, *seen, causal=mask is None))
    return net


@pytest.mark.parametrize("mask", [None, np.tri(3)])
def test_what_masks_fill_in_is_no_finding(mask: Any) -> None:
    net = attending(mask)
    assert watched(net) is None
    assert watched(net, Gradients.of_program(net.program)) is None


def test_a_mask_that_leaves_nothing_is_one() -> None:
    net = attending(np.diag([0, 1, 1]))
    found = watched(net)
    assert found is not None
    assert (found.op, found.computed) == ("attention", "softmax")
    assert found.ranges[0] is not None
    assert found.ranges[0][0] == -INF


def test_in_a_batch_and_of_several_results() -> None:
    net = Net()
    x = net.leaf(np.array([[1.0, 2.0], [0.0, 2.0]]))
    parts = net.add("split", x, sizes=[1, 1], axis=0)
    y = net.add("reciprocal", net.add("get_output", parts, index=0))
    loss = net.add("sum", y)
    found = watched(net, Batch.of_program(net.program, net.types, [x], loss, [x]))
    assert found is not None
    assert (found.node, found.backward, found.ranges) == (y, False, ((0.0, 1.0),))
