"""Tiled attention gradients match whole matrices, with any mask, and in batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.nn import attention_tiles as score_tiles
from engine.ops.nn.attention_tiles import GRADIENTS, MASK_GRADIENT
from tests.engine.ops.values import Array, come_to

RNG = np.random.default_rng(12)
SCALE = 0.6


def operands(queries: int = 7, keys: int = 9, lead: tuple[int, ...] = (2,)) -> list[Array]:
    """Return independent random q, k, v, lse, delta and g."""
    shapes = (*lead, queries, 3), (keys, 3), (*lead, keys, 2), (*lead, queries, 1), (*lead, queries, 1)
    return [RNG.normal(size=shape) for shape in (*shapes, (*lead, queries, 2))]


def whole(arrays: list[Array], mask: Array | None, causal: bool) -> list[Array]:
    """Return dq, dk, dv and ds from whole matrices, each with all leading axes."""
    q, k, v, lse, delta, g = arrays
    visible = np.tri(q.shape[-2], k.shape[-2], dtype=bool) if causal else np.ones((q.shape[-2], k.shape[-2]), bool)
    scores = SCALE * q @ k.T
    if mask is not None:
        visible, scores = (visible & mask, scores) if mask.dtype == bool else (visible, scores + mask)
    p = np.where(visible, np.exp(scores - lse), 0.0)
    ds = p * (g @ v.swapaxes(-1, -2) - delta)
    return [SCALE * ds @ k, SCALE * ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ g, ds]


def gradients(arrays: list[Array], causal: bool) -> list[Array]:
    types = GRADIENTS.infer(*map(TensorType.of, arrays), scale=SCALE, causal=causal)
    assert isinstance(types, tuple)
    out = tuple(np.full(t.shape, 9.0) for t in types)
    GRADIENTS.forward(RunContext(np), *arrays, out=out, scale=SCALE, causal=causal)
    return list(out)


@pytest.fixture(params=[1 << 18, 8 * 20], ids=["one tile", "many tiles"])
def _tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_tiles, "TILE_BYTES", request.param)
    monkeypatch.setattr(score_tiles, "LEAST_ROWS", 2)
    monkeypatch.setattr(score_tiles, "MOST_COLUMNS", 4 if request.param < 1000 else 512)


@pytest.mark.usefixtures("_tiles")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["none", "keep", "added"])
def test_tiled_gradients_match_whole_matrices(kind: str, causal: bool) -> None:
    mask = {"none": None, "keep": RNG.random((7, 9)) < 0.7, "added": RNG.normal(size=(2, 7, 9))}[kind]
    arrays = operands()
    actual = gradients([*arrays, *([] if mask is None else [mask])], causal)
    for a, b in zip(actual, whole(arrays, mask, causal)[:3], strict=True):
        np.testing.assert_allclose(a, b, 1e-11, 1e-13)


@pytest.mark.usefixtures("_tiles")
@pytest.mark.parametrize("shape", [(2, 7, 9), (7, 9), (7, 1), (9,), (1, 1, 1), (5, 2, 7, 9)], ids=str)
def test_mask_gradient_is_summed_over_broadcast_axes(shape: tuple[int, ...]) -> None:
    arrays, mask = operands(), RNG.normal(size=shape)
    ds = whole(arrays, mask, causal=True)[3]
    expected = ds.sum(tuple(range(max(0, ds.ndim - len(shape)))))
    expected = expected.sum(tuple(i for i, e in enumerate(shape) if e != expected.shape[i]), keepdims=True)
    out = np.full(shape, 9.0)
    assert MASK_GRADIENT.infer(*map(TensorType.of, [*arrays, mask])) == TensorType.of(out)
    MASK_GRADIENT.forward(RunContext(np), *arrays, mask, out=out, scale=SCALE, causal=True)
    np.testing.assert_allclose(out, expected, 1e-11, 1e-13)


@pytest.mark.parametrize("causal", [False, True])
def test_non_finite_values_of_hidden_keys_propagate(causal: bool) -> None:
    """The whole product has NaN from 0 · ∞, wherever the infinity is."""
    arrays = operands(4, 6)
    arrays[1][5, 0] = np.inf  # a key hidden from every query
    with np.errstate(invalid="ignore", over="ignore"):
        dq = gradients(arrays, causal)[0]
    assert not np.isfinite(dq[..., 0]).any()
    assert np.isnan(dq[..., 0]).all() or not causal
    assert np.isfinite(dq[..., 1:]).all() == causal


def test_results_have_the_leading_axes_of_all_operands() -> None:
    actual = GRADIENTS.infer(*map(TensorType.of, operands(lead=(3, 2))), scale=SCALE, causal=False)
    assert isinstance(actual, tuple)
    assert [t.shape for t in actual] == [(3, 2, 7, 3), (3, 2, 9, 3), (3, 2, 9, 2)]


@pytest.mark.parametrize("mapped_mask", [False, True])
def test_each_example_has_its_own_mask_gradient(mapped_mask: bool) -> None:
    arrays, mask = operands(3, 4, lead=(5,)), RNG.normal(size=(5, 4) if mapped_mask else (4,))
    attrs: dict[str, Any] = {"scale": SCALE, "causal": False}
    mapped = (True, False, True, True, True, True, mapped_mask)
    actual = come_to(lambda *values: MASK_GRADIENT.batch(mapped, *values, **attrs), *arrays, mask)
    for i in range(5):
        each = [x[i] if m else x for m, x in zip(mapped, [*arrays, mask], strict=True)]
        ds = whole([x[None] if j != 1 else x for j, x in enumerate(each[:6])], each[6], causal=False)[3]
        np.testing.assert_allclose(actual[i], ds.sum((0, 1)), 1e-11, 1e-13)
