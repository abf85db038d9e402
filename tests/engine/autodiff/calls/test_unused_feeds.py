"""A leaf that the answer does not need may be fed too: its feed is checked, and nothing else comes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Batch, Compiler, EngineError, Gradients, NonfiniteWatch, Values, analyse, certify, export_gradients
from engine.compiler.compiler import CompileRequest
from tests.contract.cases import EXECUTOR, LIMITS
from tests.engine.autodiff.calls.asking import Net

UNUSED = 1


def net(unused: Any = (1.0, 2.0, 3.0), **declared: Any) -> Net:
    """Σ x², and a leaf that it does not need."""
    made = Net()
    x = made.leaf([1.0, -2.0])
    made.feeds[made.add("input", **declared)] = np.asarray(unused)
    made.add("sum", made.add("square", x))
    return made


def without(made: Net) -> Net:
    return Net(made.statements, {node: a for node, a in made.feeds.items() if node != UNUSED})


def test_the_answer_is_the_same_and_takes_no_more() -> None:
    compiler, fed, left_out = Compiler(LIMITS), net(), without(net())
    plan = compiler.gradients(left_out.program, left_out.types).plan
    with_it = compiler.gradients(fed.program, fed.types)
    assert with_it.plan.peak_bytes == plan.peak_bytes
    value, gradient = EXECUTOR.run(with_it.plan, fed.feeds)
    assert value == 5
    np.testing.assert_array_equal(gradient, [2.0, -4.0])


def test_its_type_makes_no_other_plan() -> None:
    compiler = Compiler(LIMITS)
    assert not compiler.gradients(net().program, net().types).cached
    other = net(unused=np.zeros((4, 4), "int8"))
    assert compiler.gradients(other.program, other.types).cached
    assert compiler.gradients(other.program, without(other).types).cached


def test_it_is_checked_against_what_its_leaf_declares_whether_planned_or_not() -> None:
    compiler, fitting, wrong = Compiler(LIMITS), net(shape=[3]), net(unused=[1.0], shape=[3])
    sentence = r"^node 1 \(input\): is declared with shape \[3\], but is fed shape \[1\]$"
    for _ in range(2):
        with pytest.raises(EngineError, match=sentence) as raised:
            compiler.gradients(wrong.program, wrong.types)
        assert raised.value.code == "shape_mismatch"
        compiler.gradients(fitting.program, fitting.types)


@pytest.mark.parametrize("node", [2, 4, -1])
def test_what_takes_no_feed_gets_none(node: int) -> None:
    made = net()
    with pytest.raises(EngineError) as raised:
        Compiler(LIMITS).gradients(made.program, made.types | {node: made.types[0]})
    assert raised.value.code == "unexpected_feed"


def test_a_node_of_wrt_without_a_path_still_needs_its_feed() -> None:
    made = without(net())
    with pytest.raises(EngineError, match=r"^node 1 \(input\): the answer needs a feed") as raised:
        Compiler(LIMITS).gradients(made.program, made.types, wrt=[0, UNUSED])
    assert raised.value.code == "missing_feed"


def test_a_gradient_as_a_graph_runs_on_the_feeds_of_the_original() -> None:
    made = Net()
    x, w = made.leaf([1.0, 2.0]), made.leaf([3.0, 4.0])
    made.add("sum", made.add("add", x, made.add("mul", w, w)))
    exported = export_gradients(made.program, made.types, Gradients.of_program(made.program), LIMITS)
    gradient = Net(list(exported.statements), made.feeds)
    (by_x,) = (node for source, node in exported.gradients if source == x)
    compiled = Compiler(LIMITS).forward(gradient.program, gradient.types, [by_x])
    np.testing.assert_array_equal(EXECUTOR.run(compiled.plan, gradient.feeds)[0], [1.0, 1.0])


def test_a_forecast_and_an_export_are_the_same() -> None:
    made = net()
    call = Gradients.of_program(made.program)
    assert analyse(CompileRequest(made.program, made.types, call, LIMITS)) == analyse(
        CompileRequest(made.program, without(made).types, call, LIMITS)
    )
    fed, left_out = (export_gradients(made.program, n.types, call, LIMITS) for n in (made, without(made)))
    assert fed == left_out


@pytest.mark.parametrize(
    "unused", [[1.0, 2.0, 3.0], np.ones(3, "float16"), np.array([True])], ids=["f64", "f16", "bool"]
)
def test_a_certificate_is_the_same(unused: Any) -> None:
    made = net(unused)
    call = Gradients.of_program(made.program)
    one, other = (certify(EXECUTOR, made.program, n.feeds, call, 1, 1e-6, LIMITS) for n in (made, without(made)))
    assert one == other
    assert one.passed


@pytest.mark.parametrize("mapped", [[0, UNUSED], [UNUSED]])
def test_a_batch_may_map_it(mapped: list[int]) -> None:
    """Its leading axis counts like the others'."""
    made = net()
    one = {0: np.array([1.0, -2.0]), UNUSED: np.zeros(3)}
    many = Net(made.statements, {**one, **{node: np.stack([one[node]] * 4) for node in mapped}})
    call = Batch.of_program(many.program, many.types, mapped)
    compiled = Compiler(LIMITS).compile(many.program, many.types, call)
    values, gradients = EXECUTOR.run(compiled.plan, many.feeds)
    np.testing.assert_array_equal(values, [5.0] * 4)
    np.testing.assert_array_equal(gradients, [[2.0, -4.0]] * 4)


def test_a_batch_checks_one_example_of_it() -> None:
    made = net(unused=np.zeros((4, 2)), shape=[3])
    many = Net(made.statements, {**made.feeds, 0: np.zeros((4, 2))})
    call = Batch.of_program(many.program, many.types, [0, UNUSED])
    with pytest.raises(EngineError, match=r"^node 1 \(input\): is declared with shape \[3\], but is fed shape \[2\]$"):
        Compiler(LIMITS).compile(many.program, many.types, call)


def test_nan_in_it_is_no_finding() -> None:
    """The watch looks at what the plan reads, and at nothing else that came with the request."""
    made = net(unused=[np.nan])
    plan = Compiler(LIMITS).compile(made.program, made.types, Values.of_program(made.program)).plan
    assert NonfiniteWatch(made.program, made.feeds, plan, EXECUTOR).first_nonfinite is None
    watched = net()
    watched.feeds[0] = np.array([1.0, np.inf])
    assert NonfiniteWatch(watched.program, watched.feeds, plan, EXECUTOR).first_nonfinite is not None
