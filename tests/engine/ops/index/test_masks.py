"""Selection by masks: NumPy is the reference, for empty and full masks, and for smaller and larger k."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import LATEST, Compiler, EngineError, Limits, Program, Statement, TensorType, registry
from engine.ir.errors import BadAttribute, DtypeMismatch, OverBudget, ShapeMismatch
from engine.runtime.numpy_backend import NumPyExecutor

Array = np.ndarray[Any, Any]
DENSITIES = [0.0, 0.4, 1.0]


def run_both(op: str, *operands: Array, **attrs: Any) -> list[Array]:
    """The two results."""
    ops, n = registry().ops, len(operands)
    statements = [*[Statement(ops["input"])] * n, Statement(ops[op], tuple(range(n)), attrs)]
    statements += [Statement(ops["get_output"], (n,), {"index": k}) for k in (0, 1)]
    types = {i: TensorType.of(x) for i, x in enumerate(operands)}
    plan = Compiler(Limits()).forward(Program(registry(), statements, opset=LATEST), types, [n + 1, n + 2]).plan
    return list(NumPyExecutor().run(plan, dict(enumerate(operands))))


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("k", [0, 3, 12, 40])
@pytest.mark.parametrize("shape", [(), (12,), (3, 4), (2, 3, 2), (0, 4)])
def test_nonzero_matches_numpy_padded_with_zeros(shape: tuple[int, ...], k: int, density: float) -> None:
    mask = np.asarray(np.random.default_rng(0).random(shape) < density)
    places, count = run_both("nonzero", mask, k=k)
    expected = np.argwhere(mask)[:k]
    np.testing.assert_array_equal(places[: len(expected)], expected)
    np.testing.assert_array_equal(places[len(expected) :], 0)
    assert (places.shape, places.dtype, count.shape, count.dtype) == ((k, len(shape)), "int64", (), "int64")
    assert count == mask.sum()


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("k", [0, 3, 5, 9])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_compress_matches_numpy_padded_with_fill(axis: int, k: int, density: float) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5, 5, 5))
    mask = rng.random(5) < density
    for attrs, fill in (({}, 0.0), ({"fill": 2.5}, 2.5), ({"fill_as": "-inf"}, -np.inf)):
        entries, count = run_both("compress", x, mask, k=k, axis=axis, **attrs)
        expected = np.moveaxis(np.full((k, 5, 5), fill), 0, axis).copy()
        taken = np.compress(mask, x, axis).take(range(min(k, mask.sum())), axis)
        np.moveaxis(expected, axis, 0)[: taken.shape[axis]] = np.moveaxis(taken, axis, 0)
        np.testing.assert_array_equal(entries, expected)
        assert count == mask.sum()


def test_compress_of_an_empty_array_is_the_fill() -> None:
    entries, count = run_both("compress", np.zeros((0, 2)), np.zeros(0, bool), k=3, fill=7)
    np.testing.assert_array_equal(entries, np.full((3, 2), 7.0))
    assert count == 0


def test_invalid_operands_are_refused() -> None:
    x, mask = np.zeros((3, 2)), np.ones(3, bool)
    with pytest.raises(DtypeMismatch, match=r"operand 1 \(mask\) must be of dtype bool, but is int64"):
        run_both("compress", x, np.ones(3, "int64"), k=1)
    with pytest.raises(DtypeMismatch, match=r"operand 0 \(mask\) must be of dtype bool, but is float64"):
        run_both("nonzero", x, k=1)
    with pytest.raises(ShapeMismatch, match=r"operand 1 \(mask\) must have shape \[2\], one for each entry of axis 1"):
        run_both("compress", x, mask, k=1, axis=1)
    with pytest.raises(ShapeMismatch, match="needs at least 1 axis to pick from, but the operand has 0") as caught:
        run_both("compress", np.zeros(()), mask, k=1)
    assert caught.value.operand == 0
    with pytest.raises(BadAttribute, match="k must be a whole number of at least 0"):
        run_both("nonzero", mask, k=-1)
    with pytest.raises(BadAttribute, match="fill must be a whole number that int8 can represent"):
        run_both("compress", x.astype("int8"), mask, k=1, fill=0.5)


@pytest.mark.parametrize("op", ["nonzero", "compress"])
@pytest.mark.parametrize("k", [2**40, 2**62])
def test_k_beyond_the_budget_is_refused(op: str, k: int) -> None:
    operands = [np.ones(3, bool)] if op == "nonzero" else [np.zeros(3), np.ones(3, bool)]
    with pytest.raises(OverBudget) as caught:
        run_both(op, *operands, k=k)
    assert isinstance(caught.value, EngineError)
    assert caught.value.node == len(operands)
