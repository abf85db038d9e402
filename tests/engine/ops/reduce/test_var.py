"""Variances of one element, and with ddof at or above the count; alone and in the steps of a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Compiler, Limits, Values, open_executor
from tests.engine.looping import Writer, written
from tests.engine.ops.run import Array, grads, run

X = np.array([[1.0, 4.0, -3.0], [2.0, 2.0, 2.0], [1e8, 1e8 + 1, 1e8 - 1]])


def stepwise(x: Array, **attrs: Any) -> Array:
    """The variance of each row, by a scan in machine code."""
    pytest.importorskip("llvmlite")

    def step(g: Writer, row: int) -> list[int]:
        return [g.var(row, **attrs)]

    asked = written(lambda g, x: g.scan(x, body=step, carries=0, sequences=1), x, floats=())
    plan = Compiler(Limits()).compile(asked.program, asked.types, Values.of_program(asked.program, asked.results)).plan
    native = open_executor("cpu", compile="on")
    for _ in range(3):
        (result,) = native.run(plan, asked.feeds)
        native.settle()
    return result


@pytest.mark.parametrize("ddof", [0, 1, 2])
def test_variance_of_rows(ddof: int) -> None:
    expected = np.var(X, axis=1, ddof=ddof)
    np.testing.assert_allclose(run("var", X, axes=[1], ddof=ddof), expected, 1e-15)
    np.testing.assert_allclose(stepwise(X, ddof=ddof), expected, 1e-15)


@pytest.mark.parametrize("ddof", [3, 4])
def test_ddof_at_or_above_the_count_divides_by_zero(ddof: int) -> None:
    expected = np.array([np.inf, np.nan, np.inf])
    np.testing.assert_array_equal(run("var", X, axes=[1], ddof=ddof), expected)
    np.testing.assert_array_equal(stepwise(X, ddof=ddof), expected)


def test_variance_of_one_element_is_zero() -> None:
    for x, axes in ((np.array([[3.0], [4.0]]), [1]), (np.array(5.0), [])):
        assert not run("var", x, axes=axes).any()
        assert np.isnan(run("var", x, axes=axes, ddof=1)).all()
    assert not stepwise(np.array([[3.0], [4.0]])).any()
    assert not stepwise(np.array([3.0, 4.0])).any()


@pytest.mark.parametrize("ddof", [0, 1])
def test_gradient_is_twice_the_deviation_over_the_divisor(ddof: int) -> None:
    x, g = X[:2], np.array([3.0, -0.5])
    _, (actual,) = grads("var", x, axes=[1], ddof=ddof, cotangent=g)
    np.testing.assert_allclose(actual, g[:, None] * 2 * (x - x.mean(axis=1, keepdims=True)) / (3 - ddof), 1e-14)
    assert np.isnan(grads("var", np.full((1, 1), 2.0), axes=[1], ddof=1)[1][0]).all()
