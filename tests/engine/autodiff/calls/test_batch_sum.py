"""Sums over examples: equality with a loop over single examples, memory, and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine import LATEST, Batch, BatchSum, EngineError, Gradients, Program, Statement, registry
from engine.compiler.compiler import CompileRequest, plan_call
from engine.ir.program import Function
from tests.contract.cases import EXECUTOR, LIMITS, Case
from tests.engine.autodiff.calls.asking import Array, Net, kind
from tests.engine.autodiff.calls.test_laws import each_op, weighted
from tests.sampling import together

SIZE = 4
KEYS = np.array([[0, 42], [7, 7], [1, 2], [3, 4], [5, 6]], "uint32")


def scaled(case: Case, salt: int) -> tuple[Net, list[int], int]:
    """Build a weighted sum of an op's results; each float operand is a leaf times a fed scale."""
    plain, wrt, loss = weighted(case, salt)
    net, copies, scales = Net(), dict[int, int](), list[int]()
    for i, statement in enumerate(plain.statements):
        operands = tuple(copies[k] for k in statement.operands)
        net.statements.append(replace(statement, operands=operands))
        copies[i] = net.last
        if i in plain.feeds:
            net.feeds[net.last] = plain.feeds[i]
        if i in wrt:
            scales.append(net.leaf(np.asarray(1.0, plain.feeds[i].dtype)))
            copies[i] = net.add("mul", copies[i], scales[-1])
    return net, scales, copies[loss]


def total(net: Net, mapped: Sequence[int], *asked: Any) -> dict[Any, Array]:
    return net.ask(BatchSum.over_program(net.program, net.types, mapped, *asked))


@together
@pytest.mark.slow
@each_op
def test_sum_over_examples_matches_a_loop(case: Case) -> None:
    """Each op is differentiated with respect to shared scales, through its batching rule."""
    singles = [scaled(case, salt) for salt in range(SIZE)]
    net, scales, loss = singles[0]
    call = Gradients.of_program(net.program, loss, scales, [loss])
    answers = [one.ask(call) for one, _, _ in singles]
    mapped = [i for i in net.feeds if i not in scales]
    stacked = {i: np.stack([one.feeds[i] for one, _, _ in singles]) for i in mapped}
    many = Net(net.statements, {**net.feeds, **stacked})
    for label, summed in total(many, mapped, loss, scales, [loss]).items():
        np.testing.assert_allclose(summed, sum(answer[label] for answer in answers), 1e-10, 1e-11)


def test_value_independent_of_the_example_counts_n_times() -> None:
    """The sum over N examples is N times the value, also if it is differentiated with respect to itself."""
    net = Net()
    x, w = net.leaf(np.arange(5.0), "input"), net.leaf(3.0)
    results = total(net, [x], w, [w], [x, w])
    assert kind(results, "values") == {(x,): 10.0, (w,): 15.0}
    assert kind(results, "gradients") == {(w,): 5.0}


def test_values_without_gradients() -> None:
    net = Net()
    x = net.leaf(np.arange(6.0).reshape(3, 2), "input")
    y = net.add("square", x)
    results = total(net, [x])
    assert [label.kind for label in results] == ["values"]
    np.testing.assert_array_equal(kind(results, "values")[(y,)], [0.0 + 4 + 16, 1 + 9 + 25])


def test_empty_batch_sums_to_zero() -> None:
    net = Net()
    x, w = net.leaf(np.empty((0, 2)), "input"), net.leaf([1.0, 2.0])
    loss = net.add("sum", net.add("mul", x, w))
    results = total(net, [x])
    assert kind(results, "values")[(loss,)] == 0.0
    np.testing.assert_array_equal(kind(results, "gradients")[(w,)], [0.0, 0.0])


def test_second_order_within_an_example() -> None:
    """z = (d sin(x)·w / dx)², with respect to a w that all examples share."""
    net = Net()
    x, w = net.leaf([0.1, 0.2, 0.3], "input"), net.leaf(2.0)
    z = net.add("square", net.add("grad", net.add("mul", net.add("sin", x), w), x))
    results, a = total(net, [x], z, [w]), net.feeds[x]
    np.testing.assert_allclose(kind(results, "values")[(z,)], sum((np.cos(a) * 2) ** 2), 1e-14)
    np.testing.assert_allclose(kind(results, "gradients")[(w,)], sum(4 * np.cos(a) ** 2), 1e-14)


def test_random_draws_use_own_or_shared_keys() -> None:
    net = Net()
    own, shared, w = net.leaf(KEYS, "input"), net.leaf(KEYS[0], "input"), net.leaf(2.0)
    both = [net.add("random_normal", key, shape=[3], dtype="float64") for key in (own, shared)]
    z = net.add("sum", net.add("mul", net.add("mul", *both), w))
    singles = [Net(net.statements, {**net.feeds, own: key}) for key in KEYS]
    expected = [one.ask(Gradients.of_program(one.program, z, [w])) for one in singles]
    for label, summed in total(net, [own], z, [w]).items():
        np.testing.assert_allclose(summed, sum(answer[label] for answer in expected), 1e-13)


def test_scan_within_an_example() -> None:
    """w^3 · x by a scan of three steps, each of which multiplies by w."""
    ops = registry().ops
    body = Function(registry(), [Statement(ops["input"]), Statement(ops["input"]), Statement(ops["mul"], (0, 1))], [2])
    statements = [
        Statement(ops["parameter"]),
        Statement(ops["input"]),
        Statement(ops["scan"], (0, 1), {"body": 0, "carries": 1, "length": 3}),
        Statement(ops["get_output"], (2,), {"index": 0}),
    ]
    program = Program(registry(), statements, opset=LATEST, functions=[body])
    feeds = {0: np.float64(2.0).reshape(()), 1: np.array([1.0, 2.0, 4.0])}
    types = {i: Net(feeds=feeds).types[i] for i in feeds}
    written, plan = plan_call(CompileRequest(program, types, BatchSum.over_program(program, types, [1]), LIMITS))
    value, gradient = EXECUTOR.run(plan, feeds)
    assert [label.kind for label in written.labels] == ["values", "gradients"]
    assert (value, gradient) == (8.0 * 7, 3 * 4.0 * 7)


def test_single_example_gradients_are_not_materialized() -> None:
    """Gradients of 64 examples of a 256 × 256 layer would take 32 MiB; the sum takes a tenth of that."""
    net = Net()
    x, w = net.leaf(np.ones((64, 256)), "input"), net.leaf(np.ones((256, 256)))
    loss = net.add("sum", net.add("square", net.add("tanh", net.add("matmul", x, w))))
    single = 256 * 256 * 8
    _, many = plan_call(
        CompileRequest(net.program, net.types, Batch.of_program(net.program, net.types, [x], loss), LIMITS)
    )
    _, summed = plan_call(
        CompileRequest(net.program, net.types, BatchSum.over_program(net.program, net.types, [x], loss), LIMITS)
    )
    assert many.peak_bytes > 64 * single
    assert summed.peak_bytes < 6 * single


@pytest.mark.parametrize("of_a_leaf", [True, False])
def test_gradient_wrt_a_mapped_node_is_refused(of_a_leaf: bool) -> None:
    net = Net()
    x, w = net.leaf([1.0, 2.0]), net.leaf(3.0)
    y = net.add("mul", x, w)
    with pytest.raises(EngineError, match="wrt names this node, which differs between examples") as caught:
        total(net, [x], y, [w, x if of_a_leaf else y])
    assert (caught.value.code, caught.value.node) == ("invalid_field", x if of_a_leaf else y)


def test_sum_of_integers_is_refused() -> None:
    net = Net()
    x, w = net.leaf([[1.0, 2.0]], "input"), net.leaf(3.0)
    index = net.add("argmax", x, axis=0)
    loss = net.add("sum", net.add("mul", x, w))
    with pytest.raises(
        EngineError, match=r"node 2 .argmax.: is int64, but only floats can be summed over examples"
    ) as caught:
        total(net, [x], loss, [w], [loss, index])
    assert caught.value.code == "dtype_mismatch"
