"""Ops on attention scores: leading axes broadcast, batches add one more, and FLOPs count per score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import registry
from engine.ir.errors import ShapeMismatch
from engine.ir.tensor_type import TensorType
from engine.ops.nn.attention_tiles import GRADIENTS, MASK_GRADIENT, AttentionRows, ScoreOp, batch_axes
from tests.engine.ops.values import Array, written

RNG = np.random.default_rng(19)
ATTRS: dict[str, Any] = {"scale": 0.6, "causal": False}


def typed(*shapes: tuple[int, ...]) -> list[TensorType]:
    return [TensorType(shape, np.dtype("float64")) for shape in shapes]


def test_batch_axes_broadcast() -> None:
    assert batch_axes(*typed((4, 1, 5, 3), (2, 7, 3), (7, 4))) == (4, 2)
    assert batch_axes(*typed((5, 3), (7, 3))) == ()
    with pytest.raises(ShapeMismatch):
        batch_axes(*typed((2, 5, 3), (3, 7, 3)))


def reference(q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    weights = np.exp(0.6 * q @ k.swapaxes(-1, -2))
    sums = weights.sum(-1, keepdims=True)
    return weights @ v / sums, np.log(sums)


@pytest.mark.parametrize("mapped", [(True, False, False), (False, True, True), (True, True, True)], ids=str)
@pytest.mark.parametrize("lead", [(), (2,)], ids=str)
def test_batch_matches_each_example(lead: tuple[int, ...], mapped: tuple[bool, ...]) -> None:
    shapes = (*lead, 5, 3), (7, 3), (*lead, 7, 2)
    arrays = [RNG.normal(size=(4, *shape) if m else shape) for m, shape in zip(mapped, shapes, strict=True)]
    op = AttentionRows()

    def write(*values: Any) -> Any:
        rows = op.batch(mapped, *values, **ATTRS)
        return [rows.output(0), rows.output(1)]

    _, actual = written(write, *arrays)
    for i in range(4):
        one = [x[i] if m else x for m, x in zip(mapped, arrays, strict=True)]
        for result, expected in zip(actual, reference(*one), strict=True):
            np.testing.assert_allclose(result[i], expected, 1e-12)


@pytest.mark.parametrize(("op", "products"), [(AttentionRows(), 2), (GRADIENTS, 5), (MASK_GRADIENT, 2)])
def test_flops_are_counted_per_score(op: ScoreOp, products: int) -> None:
    """14 per score for the exponential and related work, plus its products over d = 3 and over the width of 4."""
    types = typed((6, 1, 5, 3), (2, 7, 3), (7, 4))
    assert op.flops(types[0], *types, **ATTRS) == (6 * 2 * 5 * 7) * (14 + products * (3 + 4))


@pytest.mark.parametrize("op", [AttentionRows(), GRADIENTS, MASK_GRADIENT], ids=lambda op: op.name)
def test_score_ops_are_internal(op: ScoreOp) -> None:
    assert op.internal
    assert op.name not in registry().ops
