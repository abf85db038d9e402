"""Attributes at their minimum and maximum: accepted, and in canonical form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import TensorType, registry
from engine.ir.op import Kernel
from engine.ir.run_context import RunContext
from tests.engine.ops.run import Array, error, run

PLANE, NONE = np.arange(6.0).reshape(2, 3), np.zeros((0, 2), "int64")

LEAST: list[tuple[str, list[Array], dict[str, Any], Array]] = [
    ("slice", [PLANE], {"steps": [1, 1]}, PLANE),
    ("broadcast_to", [np.zeros((1, 3))], {"shape": [0, 3]}, np.zeros((0, 3))),
    ("segment_sum", [np.zeros((0, 2)), np.zeros(0, "int64")], {"segments": 0}, np.zeros((0, 2))),
    ("one_hot", [NONE], {"classes": 0}, np.zeros((0, 2, 0))),
    ("var", [PLANE], {"ddof": 0}, np.var(PLANE)),
    ("polygamma", [np.ones(2)], {"order": 0}, np.full(2, -np.euler_gamma)),
]


@pytest.mark.parametrize(("op", "operands", "attrs", "wanted"), LEAST, ids=[op for op, *_ in LEAST])
def test_minimum_attribute_values(op: str, operands: list[Array], attrs: dict[str, Any], wanted: Array) -> None:
    np.testing.assert_allclose(run(op, *operands, **attrs), wanted, 1e-15)


def test_polygamma_order_is_at_most_170() -> None:
    assert np.isfinite(run("polygamma", np.full(1, 40.0), order=170))
    assert error("polygamma", np.ones(1), order=171).expected == "a whole number of at most 170"


def test_einsum_accepts_at_most_32_operands() -> None:
    for count in (32, 33):
        operands, equation = [np.ones(1)] * count, ",".join("i" * count) + "->i"
        if count == 32:
            assert run("einsum", *operands, equation=equation).tolist() == [1.0]
        else:
            assert error("einsum", *operands, equation=equation).code == "operand_count"


def test_slice_of_one_entry_has_canonical_step_one() -> None:
    op, x = registry().ops["slice"], TensorType((7,), np.dtype("float64"))
    actual = [
        op.canonical({"starts": [2], "stops": stops, "steps": [step]}, x) for stops, step in (([3], 1), (None, 5))
    ]
    assert actual == [{"starts": (2,), "stops": (3,), "steps": (1,)}] * 2


def test_topk_of_many_entries_is_sorted() -> None:
    """More than selected one by one, but not all; equal entries in order."""
    x = np.random.default_rng(0).integers(0, 50, (2, 400)).astype(float)
    order = np.argsort(-x, axis=1, kind="stable")[:, :300]
    values, indices = np.empty((2, 300)), np.empty((2, 300), "int64")
    op = registry().ops["topk"]
    assert isinstance(op, Kernel)
    op.forward(RunContext(np), x, out=(values, indices), k=300, axis=1)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


RANGES = [(0, 5, 2, 3), (5, 0, -2, 3), (0, 0, 1, 0), (3, 1, 1, 0), (1, 3, -1, 0), (0, 2.5, 1, 3), (0, -2.5, -1, 3)]


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize(("start", "stop", "step", "count"), RANGES)
def test_arange_length(start: float, stop: float, step: float, count: int, dtype: str) -> None:
    actual = run("arange", start=start, stop=stop, step=step, dtype=dtype)
    np.testing.assert_array_equal(actual, start + step * np.arange(count))


def test_tiny_range_contains_its_start() -> None:
    for step, stop in ((1e300, 5e-324), (0.5e300, 5e-324), (-1e300, -5e-324)):
        assert run("arange", start=0.0, stop=stop, step=step, dtype="float64").tolist() == [0.0]
