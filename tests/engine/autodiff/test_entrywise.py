"""Ops with much memory per element: many elements are mapped one by one, with the same numbers and less memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Compiler, Limits, TensorType
from engine.ir.errors import NotDifferentiable
from tests.engine.ops.derivatives import derivatives
from tests.engine.ops.run import _program, grads

Array = np.ndarray[Any, Any]


def operands(op: str, size: int) -> list[Array]:
    rng = np.random.default_rng(4)
    shapes = [rng.uniform(0.5, 20, (size, 1)), rng.uniform(0.5, 20, 3)]
    return [*shapes, rng.uniform(0.1, 0.9, (1, 3))] if op == "betainc" else shapes


def planned(op: str, arrays: list[Array]) -> Any:
    program, feeds = _program(op, tuple(arrays), {})
    types = {i: TensorType.of(a) for i, a in feeds.items()}
    out = TensorType(np.broadcast_shapes(*(a.shape for a in arrays)), np.dtype("float64"))
    return Compiler(Limits()).gradients(program, types, wrt=[0], cotangent=out).plan


@pytest.mark.parametrize("op", ["igamma", "igammac", "betainc"])
def test_many_elements_match_few_elements(op: str) -> None:
    many = operands(op, 700)
    value, gradients = grads(op, *many, cotangent=np.random.default_rng(5).normal(size=(700, 3)))
    few = [many[0][:50], *many[1:]]
    cotangent = np.random.default_rng(5).normal(size=(700, 3))[:50]
    few_value, few_gradients = grads(op, *few, cotangent=cotangent)
    np.testing.assert_array_equal(value[:50], few_value)
    np.testing.assert_allclose(gradients[0][:50], few_gradients[0], 1e-13, 1e-15)


@pytest.mark.parametrize("op", ["igamma", "betainc"])
def test_memory_per_element_is_bounded(op: str) -> None:
    """All points of all elements at once would take 100 times the memory of the operands."""
    small, large = (planned(op, operands(op, size)).peak_bytes for size in (10_000, 40_000))
    assert large - small < 40 * 8 * 3 * 30_000


def test_second_derivative_is_refused_if_mapped() -> None:
    with pytest.raises(NotDifferentiable, match="no second derivative with respect to a"):
        derivatives("igamma", np.ones(2000), np.ones(2000), by=(0, 0))
