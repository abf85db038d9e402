"""Attention in whole matrices: scores and first- and second-order gradients, against NumPy and finite differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine.ir.graph import Value
from engine.ops.nn.attention_tiles import AttentionBackward, Masking, SavedValues
from tests.engine.ops.values import Array, come_to, written

RNG = np.random.default_rng(11)
SCALE = 0.7
SHAPES = {"q": (2, 3, 2), "k": (4, 2), "v": (2, 4, 3), "lse": (2, 3, 1), "delta": (2, 3, 1), "g": (2, 3, 3)}
SAVED = [RNG.normal(size=shape) for shape in SHAPES.values()]
ADDED, SHOWN = RNG.normal(size=(3, 4)), np.array([[1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1]], bool)
MASKS = pytest.mark.parametrize("mask", [None, SHOWN, ADDED], ids=["no mask", "bool", "float"])
CAUSAL = pytest.mark.parametrize("causal", [False, True])


def visibility(mask: Array | None, causal: bool) -> Array:
    """Return [queries, keys]: whether the query sees the key."""
    visible = np.array([[not causal or j <= i for j in range(4)] for i in range(3)])
    return visible if mask is None or mask.dtype != bool else visible & mask


def scores(q: Array, k: Array, mask: Array | None) -> Array:
    products = SCALE * np.einsum("...id,...jd->...ij", q, k)
    return products if mask is None or mask.dtype == bool else products + mask


def backward(saved: Sequence[Array], mask: Array | None, causal: bool) -> list[Array]:
    """Return dq, dk, dv and ds from their definitions."""
    q, k, v, lse, delta, g = saved
    visible = visibility(mask, causal)
    p = np.where(visible, np.exp(scores(q, k, mask) - lse), 0.0)
    ds = np.where(visible, p * (np.einsum("...ic,...jc->...ij", g, v) - delta), 0.0)
    dq, dk = SCALE * np.einsum("...ij,jd->...id", ds, k), SCALE * np.einsum("...ij,...id->...jd", ds, q)
    return [dq, dk, np.einsum("...ij,...ic->...jc", p, g), ds]


def saved_of(values: Sequence[Value]) -> SavedValues:
    return SavedValues(*values)


@MASKS
@CAUSAL
def test_hidden_keys_score_minus_infinity(mask: Array | None, causal: bool) -> None:
    def write(q: Value, k: Value, *more: Value) -> Value:
        return Masking(more[0] if more else None, SCALE, causal).scores(q, k)

    actual = come_to(write, *SAVED[:2], *([] if mask is None else [mask]))
    expected = np.where(visibility(mask, causal), scores(SAVED[0], SAVED[1], mask), -math.inf)
    np.testing.assert_allclose(actual, expected, 1e-14)


@MASKS
@CAUSAL
def test_backward_matches_its_definition(mask: Array | None, causal: bool) -> None:
    def write(*values: Value) -> list[Value]:
        gradients = AttentionBackward(saved_of(values), scale=SCALE, causal=causal)
        return [*gradients.operand_gradients, gradients.ds]

    _, actual = written(write, *SAVED, *([] if mask is None else [mask]))
    for a, b in zip(actual, backward(SAVED, mask, causal), strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-14)


@pytest.mark.parametrize("given", [(1, 1, 1, 1), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)], ids=str)
@MASKS
@CAUSAL
def test_second_order_matches_finite_differences(mask: Array | None, causal: bool, given: tuple[int, ...]) -> None:
    """For any arriving cotangents, the derivatives of Σ c · result match finite differences, one operand at a time."""
    arrays = [*SAVED, *([] if mask is None else [mask])]
    weights = [
        RNG.normal(size=x.shape) if w else None for x, w in zip(backward(SAVED, mask, causal), given, strict=True)
    ]

    def write(*values: Value) -> list[Value]:
        builder = values[0].builder
        arriving = [None if c is None else builder.constant(c) for c in weights]
        result = AttentionBackward(saved_of(values), scale=SCALE, causal=causal).second_order(*arriving)
        assert (result[-1] is None) == (mask is SHOWN)
        return [x for x in result if x is not None]

    def total(*operands: Array) -> float:
        results = backward(operands[:6], mask if len(operands) < 7 else operands[6], causal)
        return sum(float((c * x).sum()) for c, x in zip(weights, results, strict=True) if c is not None)

    actual = written(write, *arrays)[1]
    for i, derivative in enumerate(actual):
        direction = RNG.normal(size=arrays[i].shape)
        step = 1e-5
        ahead, behind = ([*arrays[:i], arrays[i] + h * direction, *arrays[i + 1 :]] for h in (step, -step))
        assert derivative.shape == arrays[i].shape
        difference = (total(*ahead) - total(*behind)) / (2 * step)
        assert float((derivative * direction).sum()) == pytest.approx(difference, rel=1e-6, abs=1e-8)


def test_second_order_without_cotangents_is_zero() -> None:
    def write(*values: Value) -> list[Any]:
        return AttentionBackward(saved_of(values), scale=SCALE, causal=False).second_order()

    assert not any(derivative.any() for derivative in written(write, *SAVED)[1])


def test_mask_gradient_has_the_shape_of_the_mask() -> None:
    def write(ds: Value, mask: Value) -> Value:
        result = Masking(mask, SCALE, causal=False).mask_gradient(ds)
        assert result is not None
        return result

    ds = RNG.normal(size=(2, 3, 4))
    np.testing.assert_allclose(come_to(write, ds, np.zeros((3, 1))), ds.sum((0, 2))[:, None], 1e-13)
