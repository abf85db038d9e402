"""Attention in whole matrices: scores and both ways back are what NumPy and central differences say."""

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


def shown(mask: Array | None, causal: bool) -> Array:
    """[queries, keys]: which key is seen by which query."""
    seen = np.array([[not causal or j <= i for j in range(4)] for i in range(3)])
    return seen if mask is None or mask.dtype != bool else seen & mask


def scores(q: Array, k: Array, mask: Array | None) -> Array:
    products = SCALE * np.einsum("...id,...jd->...ij", q, k)
    return products if mask is None or mask.dtype == bool else products + mask


def back(saved: Sequence[Array], mask: Array | None, causal: bool) -> list[Array]:
    """dq, dk, dv and ds, sum by sum."""
    q, k, v, lse, delta, g = saved
    seen = shown(mask, causal)
    p = np.where(seen, np.exp(scores(q, k, mask) - lse), 0.0)
    ds = np.where(seen, p * (np.einsum("...ic,...jc->...ij", g, v) - delta), 0.0)
    dq, dk = SCALE * np.einsum("...ij,jd->...id", ds, k), SCALE * np.einsum("...ij,...id->...jd", ds, q)
    return [dq, dk, np.einsum("...ij,...ic->...jc", p, g), ds]


def saved_of(values: Sequence[Value]) -> SavedValues:
    return SavedValues(*values)


@MASKS
@CAUSAL
def test_a_hidden_key_scores_minus_infinity_and_others_what_the_product_is(mask: Array | None, causal: bool) -> None:
    def write(q: Value, k: Value, *more: Value) -> Value:
        return Masking(more[0] if more else None, SCALE, causal).scores(q, k)

    found = come_to(write, *SAVED[:2], *([] if mask is None else [mask]))
    wanted = np.where(shown(mask, causal), scores(SAVED[0], SAVED[1], mask), -math.inf)
    np.testing.assert_allclose(found, wanted, 1e-14)


@MASKS
@CAUSAL
def test_the_way_back_is_what_its_sums_are(mask: Array | None, causal: bool) -> None:
    def write(*values: Value) -> list[Value]:
        way = AttentionBackward(saved_of(values), scale=SCALE, causal=causal)
        return [*way.operand_gradients, way.ds]

    _, found = written(write, *SAVED, *([] if mask is None else [mask]))
    for a, b in zip(found, back(SAVED, mask, causal), strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-14)


@pytest.mark.parametrize("given", [(1, 1, 1, 1), (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)], ids=str)
@MASKS
@CAUSAL
def test_the_way_back_has_a_way_back(mask: Array | None, causal: bool, given: tuple[int, ...]) -> None:
    """Whatever arrives: the derivatives of Σ c · result are its differences, each operand taken by itself."""
    arrays = [*SAVED, *([] if mask is None else [mask])]
    weights = [RNG.normal(size=x.shape) if w else None for x, w in zip(back(SAVED, mask, causal), given, strict=True)]

    def write(*values: Value) -> list[Value]:
        builder = values[0].builder
        arriving = [None if c is None else builder.constant(c) for c in weights]
        found = AttentionBackward(saved_of(values), scale=SCALE, causal=causal).second_order(*arriving)
        assert (found[-1] is None) == (mask is SHOWN)
        return [x for x in found if x is not None]

    def total(*at: Array) -> float:
        results = back(at[:6], mask if len(at) < 7 else at[6], causal)
        return sum(float((c * x).sum()) for c, x in zip(weights, results, strict=True) if c is not None)

    found = written(write, *arrays)[1]
    for i, derivative in enumerate(found):
        direction = RNG.normal(size=arrays[i].shape)
        step = 1e-5
        ahead, behind = ([*arrays[:i], arrays[i] + h * direction, *arrays[i + 1 :]] for h in (step, -step))
        assert derivative.shape == arrays[i].shape
        difference = (total(*ahead) - total(*behind)) / (2 * step)
        assert float((derivative * direction).sum()) == pytest.approx(difference, rel=1e-6, abs=1e-8)


def test_nothing_arriving_gives_nothing() -> None:
    def write(*values: Value) -> list[Any]:
        return AttentionBackward(saved_of(values), scale=SCALE, causal=False).second_order()

    assert not any(found.any() for found in written(write, *SAVED)[1])


def test_a_float_mask_has_a_cotangent_of_its_own_shape() -> None:
    def write(ds: Value, mask: Value) -> Value:
        found = Masking(mask, SCALE, causal=False).mask_gradient(ds)
        assert found is not None
        return found

    ds = RNG.normal(size=(2, 3, 4))
    np.testing.assert_allclose(come_to(write, ds, np.zeros((3, 1))), ds.sum((0, 2))[:, None], 1e-13)
