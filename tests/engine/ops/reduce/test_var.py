"""Variances of one element, and of no more than are taken off; by themselves and in the steps of a loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Compiler, Limits, Values, open_executor
from tests.engine.looping import Writer, written
from tests.engine.ops.run import Array, grads, run

X = np.array([[1.0, 4.0, -3.0], [2.0, 2.0, 2.0], [1e8, 1e8 + 1, 1e8 - 1]])


def stepwise(x: Array, **attrs: Any) -> Array:
    """Of each row, by a scan in machine code."""
    pytest.importorskip("llvmlite")

    def step(g: Writer, row: int) -> list[int]:
        return [g.var(row, **attrs)]

    asked = written(lambda g, x: g.scan(x, body=step, carries=0, sequences=1), x, floats=())
    plan = Compiler(Limits()).compile(asked.program, asked.types, Values.of_program(asked.program, asked.results)).plan
    native = open_executor("cpu", compile="on")
    for _ in range(3):
        (found,) = native.run(plan, asked.feeds)
        native.settle()
    return found


@pytest.mark.parametrize("ddof", [0, 1, 2])
def test_rows(ddof: int) -> None:
    wanted = np.var(X, axis=1, ddof=ddof)
    np.testing.assert_allclose(run("var", X, axes=[1], ddof=ddof), wanted, 1e-15)
    np.testing.assert_allclose(stepwise(X, ddof=ddof), wanted, 1e-15)


@pytest.mark.parametrize("ddof", [3, 4])
def test_where_as_many_are_taken_off_as_there_are_it_divides_by_zero(ddof: int) -> None:
    wanted = np.array([np.inf, np.nan, np.inf])
    np.testing.assert_array_equal(run("var", X, axes=[1], ddof=ddof), wanted)
    np.testing.assert_array_equal(stepwise(X, ddof=ddof), wanted)


def test_one_element_does_not_vary() -> None:
    for x, axes in ((np.array([[3.0], [4.0]]), [1]), (np.array(5.0), [])):
        assert not run("var", x, axes=axes).any()
        assert np.isnan(run("var", x, axes=axes, ddof=1)).all()
    assert not stepwise(np.array([[3.0], [4.0]])).any()
    assert not stepwise(np.array([3.0, 4.0])).any()


@pytest.mark.parametrize("ddof", [0, 1])
def test_the_gradient_is_twice_the_deviation_over_as_many_as_count(ddof: int) -> None:
    x, g = X[:2], np.array([3.0, -0.5])
    _, (found,) = grads("var", x, axes=[1], ddof=ddof, cotangent=g)
    np.testing.assert_allclose(found, g[:, None] * 2 * (x - x.mean(axis=1, keepdims=True)) / (3 - ddof), 1e-14)
    assert np.isnan(grads("var", np.full((1, 1), 2.0), axes=[1], ddof=1)[1][0]).all()
