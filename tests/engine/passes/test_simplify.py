"""Where simplifying would change a value: nothing summed, and numbers that a narrow dtype does not hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Compiler, Limits, Program, Statement, TensorType, open_executor, registry

Array = np.ndarray[Any, Any]


def line(op: str, *operands: int, **attrs: Any) -> Statement:
    return Statement(registry().ops[op], operands, attrs)


def run(fed: Array, *nodes: Statement) -> Array:
    """The last node, the first being fed."""
    compiled = Compiler(Limits()).forward(Program(registry(), [line("parameter"), *nodes]), {0: TensorType.of(fed)})
    return open_executor("cpu").run(compiled.plan, {0: fed})[0]


def test_a_sum_over_nothing_is_zero_whatever_there_is_none_of() -> None:
    found = run(np.array([np.inf, np.nan]), line("broadcast_to", 0, shape=[0, 2]), line("sum", 1, axes=[0]))
    assert found.tolist() == [0, 0]


@pytest.mark.parametrize("count", [3, 1000, 100_000])
def test_a_small_number_is_summed_more_often_than_float16_can_count(count: int) -> None:
    found = run(np.array(2.0**-14, "float16"), line("broadcast_to", 0, shape=[count]), line("sum", 1))
    np.testing.assert_allclose(found, count * 2.0**-14, rtol=1e-3)


@pytest.mark.parametrize(("start", "first", "second"), [(2.0**-14, 1024.0, 100.0), (1024.0, 2.0**-10, 2.0**-20)])
def test_scalars_whose_product_float16_does_not_hold(start: float, first: float, second: float) -> None:
    found = run(np.array(start, "float16"), line("mul_scalar", 0, scalar=first), line("mul_scalar", 1, scalar=second))
    np.testing.assert_allclose(found, start * first * second, rtol=1e-3)
