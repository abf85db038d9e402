"""Feeds of leaves that the answer does not need: they are checked, and have no other effect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Batch, Compiler, EngineError, Gradients, NonfiniteWatch, Values, analyse, certify, export_gradients
from engine.compiler.compiler import CompileRequest
from tests.contract.cases import EXECUTOR, LIMITS
from tests.engine.autodiff.calls.asking import Net

UNUSED = 1


def with_unused(unused: Any = (1.0, 2.0, 3.0), **declared: Any) -> Net:
    """Build Σ x² beside a leaf that it does not read."""
    net = Net()
    x = net.leaf([1.0, -2.0])
    net.feeds[net.add("input", **declared)] = np.asarray(unused)
    net.add("sum", net.add("square", x))
    return net


def without_unused(net: Net) -> Net:
    return Net(net.statements, {node: a for node, a in net.feeds.items() if node != UNUSED})


def test_unused_feed_changes_neither_answer_nor_memory() -> None:
    compiler, fed, left_out = Compiler(LIMITS), with_unused(), without_unused(with_unused())
    plan = compiler.gradients(left_out.program, left_out.types).plan
    compiled = compiler.gradients(fed.program, fed.types)
    assert compiled.plan.peak_bytes == plan.peak_bytes
    value, gradient = EXECUTOR.run(compiled.plan, fed.feeds)
    assert value == 5
    np.testing.assert_array_equal(gradient, [2.0, -4.0])


def test_plan_cache_ignores_types_of_unused_feeds() -> None:
    compiler = Compiler(LIMITS)
    assert not compiler.gradients(with_unused().program, with_unused().types).cached
    other = with_unused(unused=np.zeros((4, 4), "int8"))
    assert compiler.gradients(other.program, other.types).cached
    assert compiler.gradients(other.program, without_unused(other).types).cached


def test_unused_feed_is_checked_on_cache_hit_and_miss() -> None:
    compiler, fitting, wrong = Compiler(LIMITS), with_unused(shape=[3]), with_unused(unused=[1.0], shape=[3])
    sentence = r"^node 1 \(input\): is declared with shape \[3\], but is fed shape \[1\]$"
    for _ in range(2):
        with pytest.raises(EngineError, match=sentence) as raised:
            compiler.gradients(wrong.program, wrong.types)
        assert raised.value.code == "shape_mismatch"
        compiler.gradients(fitting.program, fitting.types)


@pytest.mark.parametrize("node", [2, 4, -1])
def test_feed_of_a_non_leaf_is_refused(node: int) -> None:
    net = with_unused()
    with pytest.raises(EngineError) as raised:
        Compiler(LIMITS).gradients(net.program, net.types | {node: net.types[0]})
    assert raised.value.code == "unexpected_feed"


def test_wrt_node_without_a_path_needs_its_feed() -> None:
    net = without_unused(with_unused())
    with pytest.raises(EngineError, match=r"^node 1 \(input\): the result needs a feed") as raised:
        Compiler(LIMITS).gradients(net.program, net.types, wrt=[0, UNUSED])
    assert raised.value.code == "missing_feed"


def test_exported_gradient_accepts_the_original_feeds() -> None:
    net = Net()
    x, w = net.leaf([1.0, 2.0]), net.leaf([3.0, 4.0])
    net.add("sum", net.add("add", x, net.add("mul", w, w)))
    exported = export_gradients(net.program, net.types, Gradients.of_program(net.program), LIMITS)
    gradient = Net(list(exported.statements), net.feeds)
    (x_gradient,) = (node for source, node in exported.gradients if source == x)
    compiled = Compiler(LIMITS).forward(gradient.program, gradient.types, [x_gradient])
    np.testing.assert_array_equal(EXECUTOR.run(compiled.plan, gradient.feeds)[0], [1.0, 1.0])


def test_analysis_and_export_ignore_unused_feeds() -> None:
    net = with_unused()
    call = Gradients.of_program(net.program)
    assert analyse(CompileRequest(net.program, net.types, call, LIMITS)) == analyse(
        CompileRequest(net.program, without_unused(net).types, call, LIMITS)
    )
    fed, left_out = (export_gradients(net.program, n.types, call, LIMITS) for n in (net, without_unused(net)))
    assert fed == left_out


@pytest.mark.parametrize(
    "unused", [[1.0, 2.0, 3.0], np.ones(3, "float16"), np.array([True])], ids=["f64", "f16", "bool"]
)
def test_certificate_ignores_unused_feeds(unused: Any) -> None:
    net = with_unused(unused)
    call = Gradients.of_program(net.program)
    one, other = (certify(EXECUTOR, net.program, n.feeds, call, 1, 1e-6, LIMITS) for n in (net, without_unused(net)))
    assert one == other
    assert one.passed


@pytest.mark.parametrize("mapped", [[0, UNUSED], [UNUSED]])
def test_batch_may_map_an_unused_leaf(mapped: list[int]) -> None:
    """The leading axis of an unused leaf counts like that of others."""
    net = with_unused()
    one = {0: np.array([1.0, -2.0]), UNUSED: np.zeros(3)}
    many = Net(net.statements, {**one, **{node: np.stack([one[node]] * 4) for node in mapped}})
    call = Batch.of_program(many.program, many.types, mapped)
    compiled = Compiler(LIMITS).compile(many.program, many.types, call)
    values, gradients = EXECUTOR.run(compiled.plan, many.feeds)
    np.testing.assert_array_equal(values, [5.0] * 4)
    np.testing.assert_array_equal(gradients, [[2.0, -4.0]] * 4)


def test_batch_checks_one_example_of_an_unused_feed() -> None:
    net = with_unused(unused=np.zeros((4, 2)), shape=[3])
    many = Net(net.statements, {**net.feeds, 0: np.zeros((4, 2))})
    call = Batch.of_program(many.program, many.types, [0, UNUSED])
    with pytest.raises(EngineError, match=r"^node 1 \(input\): is declared with shape \[3\], but is fed shape \[2\]$"):
        Compiler(LIMITS).compile(many.program, many.types, call)


def test_nan_in_an_unused_feed_is_not_reported() -> None:
    """The watch checks only the feeds that the plan reads."""
    net = with_unused(unused=[np.nan])
    plan = Compiler(LIMITS).compile(net.program, net.types, Values.of_program(net.program)).plan
    assert NonfiniteWatch(net.program, net.feeds, plan, EXECUTOR).first_nonfinite is None
    watched = with_unused()
    watched.feeds[0] = np.array([1.0, np.inf])
    assert NonfiniteWatch(watched.program, watched.feeds, plan, EXECUTOR).first_nonfinite is not None
