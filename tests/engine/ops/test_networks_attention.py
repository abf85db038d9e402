"""Attention against a row-by-row definition: masks, causality, broadcasting, and error messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine import Builder, TensorType, registry
from engine.autodiff.vmap import vmap
from engine.ops.nn import attention
from engine.ops.nn.attention import is_large
from tests.contract.cases import LIMITS, run_graph
from tests.engine.ops.run import Array, error, grads, run

RNG = np.random.default_rng(0)
Q, K, V = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))
KEEP = np.array([[1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 1]], bool)
BIAS = RNG.normal(size=(4, 5))


def attend(
    q: Array, k: Array, v: Array, mask: Array | None = None, scale: float | None = None, causal: bool = False
) -> Array:
    """Compute one query after the other, over the keys it may see."""
    rows = []
    for i, query in enumerate(q):
        visible = np.ones(len(k), bool) if mask is None or mask.dtype != bool else mask[i].copy()
        if causal:
            visible[i + 1 :] = False
        scores = k @ query * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
        scores += 0 if mask is None or mask.dtype == bool else mask[i]
        weights = np.exp(scores[visible])
        rows.append(weights @ v[visible] / weights.sum())
    return np.array(rows)


def test_large_scores_are_not_stored() -> None:
    """The documented rule: from 16 MiB of scores on, if they have more elements than q, k and v together."""

    def large(scores: int, *operands: int) -> bool:
        return is_large(*(TensorType((elements,), np.dtype("float64")) for elements in (scores, *operands)))

    threshold = (16 << 20) // 8
    assert large(threshold, 1, 1, 1)
    assert not large(threshold - 1, 1, 1, 1)
    assert large(threshold, threshold - 3, 1, 1)
    assert not large(threshold, threshold - 2, 1, 1)


@pytest.mark.parametrize("d", [1, 2])
def test_default_scale_depends_on_query_width(d: int) -> None:
    q, k = Q[:, :d], K[:, :d]
    np.testing.assert_allclose(run("attention", q, k, V), attend(q, k, V), 1e-13)


@pytest.mark.parametrize("mask", [None, KEEP, BIAS], ids=["unmasked", "bool", "float"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 2.0])
def test_matches_the_definition(mask: Array | None, causal: bool, scale: float | None) -> None:
    if causal and mask is KEEP:
        mask = KEEP | np.eye(4, 5, dtype=bool)
    operands = (Q, K, V) if mask is None else (Q, K, V, mask)
    attrs: dict[str, Any] = {"causal": causal} | ({} if scale is None else {"scale": scale})
    expected = attend(Q, K, V, mask, scale, causal)
    np.testing.assert_allclose(run("attention", *operands, **attrs), expected, 1e-12)


@pytest.mark.parametrize("mask", [KEEP, BIAS], ids=["bool", "float"])
def test_gradients_match_finite_differences(mask: Array) -> None:
    g = RNG.normal(size=(4, 2))
    _, gradients = grads("attention", Q, K, V, mask, cotangent=g)
    floats = [Q, K, V, *([mask] if mask.dtype == float else [])]
    directions = [RNG.normal(size=x.shape) for x in floats]
    h = 1e-6

    def loss_at(t: float) -> float:
        operands = [x + t * d for x, d in zip(floats, directions, strict=True)]
        return float((attend(*operands[:3], operands[3] if len(operands) > 3 else mask) * g).sum())

    difference = (loss_at(h) - loss_at(-h)) / (2 * h)
    actual = sum((a * d).sum() for a, d in zip(gradients, directions, strict=True))
    np.testing.assert_allclose(actual, difference, 1e-7)


def test_causal_is_aligned_at_the_top_left() -> None:
    eye = np.eye(5)
    np.testing.assert_allclose(run("attention", 0 * Q, K, eye, causal=True), np.tri(4, 5) / [[1], [2], [3], [4]])
    np.testing.assert_allclose(run("attention", 0 * K, Q, np.eye(4), causal=True)[4], np.full(4, 0.25))


@pytest.mark.parametrize("mask", [np.zeros((1, 5), bool), np.full((1, 5), -np.inf)], ids=["bool", "float"])
def test_query_without_keys_is_nan(mask: Array) -> None:
    masks = np.concatenate([mask, np.ones((1, 5), mask.dtype)])
    value = run("attention", Q[:2], K, V, masks)
    assert np.isnan(value[0]).all()
    assert np.isfinite(value[1]).all()


def test_hidden_keys_have_no_effect() -> None:
    k, v = K.copy(), V.copy()
    k[4], v[4] = 1e300, 7.0
    keep = np.ones((1, 5), bool)
    keep[0, 4] = False
    value, (dq, dk, dv) = grads("attention", Q, k, v, keep)
    np.testing.assert_allclose(value, run("attention", Q, K[:4], V[:4]), 1e-13)
    assert np.isfinite(dq).all()
    assert (dk[4] == 0).all()
    assert (dv[4] == 0).all()


def test_leading_axes_and_masks_broadcast() -> None:
    q, k, v = RNG.normal(size=(2, 1, 4, 3)), RNG.normal(size=(3, 5, 3)), RNG.normal(size=(2, 3, 5, 2))
    for mask in (
        RNG.normal(size=5),
        RNG.normal(size=(4, 1)),
        RNG.normal(size=(3, 1, 5)),
        RNG.normal(size=(6, 1, 1, 1, 1)),
    ):
        value = run("attention", q, k, v, mask)
        full = np.broadcast_to(mask, (*value.shape[:-2], 4, 5))
        for lead in np.ndindex(value.shape[:-2]):
            i, j = lead[-2:]
            np.testing.assert_allclose(value[lead], attend(q[i, 0], k[j], v[i, j], full[lead]), 1e-12)


@pytest.mark.parametrize("mapped", [{0}, {3}, {1, 3}, {0, 1, 2, 3}], ids=str)
def test_vmap_over_a_bool_mask(mapped: set[int]) -> None:
    operands = [Q, K, V, KEEP | np.eye(4, 5, dtype=bool)]
    many = [np.stack([np.roll(x, s, axis=-1) for s in range(3)]) if i in mapped else x for i, x in enumerate(operands)]
    if 3 in mapped:
        many[3][..., 0] = True
    builder = Builder(registry(), LIMITS)
    leaves = [builder.leaf(TensorType.of(x), i) for i, x in enumerate(operands)]
    y = builder.emit(registry().ops["attention"], leaves, {"causal": True})
    (actual,) = run_graph(vmap(builder.graph([y]), mapped, 3), dict(enumerate(many)))
    for i in range(3):
        single = [x[i] if j in mapped else x for j, x in enumerate(many)]
        np.testing.assert_allclose(actual[i], attend(*single, causal=True), 1e-12)


def test_scores_beyond_the_range_of_float16() -> None:
    q, k, v = (np.full((2, 64), x, "float16") for x in (200, 200, 1))
    k[1] = -200
    value = run("attention", q, k, v)
    assert value.dtype == np.float16
    np.testing.assert_array_equal(value, 1)


def test_no_queries_and_zero_width() -> None:
    assert run("attention", Q[:0], K, V).shape == (0, 2)
    np.testing.assert_allclose(run("attention", Q[:, :0], K[:, :0], V), np.broadcast_to(V.mean(0), (4, 2)))


@pytest.mark.parametrize(
    ("operands", "code", "sentence"),
    [
        ((Q[0], K, V), "shape_mismatch", "operand 0 (q) must have at least 2 axes, but has shape [3]"),
        (
            (Q, K[:, :2], V),
            "shape_mismatch",
            "operand 1 (k) must have extent 3 on axis -1 (that of q), but has shape [5, 2]",
        ),
        (
            (Q, K, V[:4]),
            "shape_mismatch",
            "operand 2 (v) must have extent 5 on axis -2 (the keys of k), but has shape [4, 2]",
        ),
        (
            (Q, K, V, KEEP[:3]),
            "shape_mismatch",
            "operand 3 (mask) must have a shape that broadcasts to [..., 4, 5], but has shape [3, 5]",
        ),
        (
            (Q[:1], K, V, KEEP),
            "shape_mismatch",
            "operand 3 (mask) must have a shape that broadcasts to [..., 1, 5], but has shape [4, 5]",
        ),
        (
            (Q, K, V, KEEP.astype("int64")),
            "dtype_mismatch",
            "operand 3 (mask) must be of dtype bool, float16, float32, float64, but is int64",
        ),
        (
            (Q, K.astype("int64"), V),
            "dtype_mismatch",
            "operand 1 (k) must be of dtype float16, float32, float64, but is int64",
        ),
        (
            (np.stack([Q, Q]), np.stack([K, K, K]), V),
            "shape_mismatch",
            "the leading axes of the operands do not broadcast: their shapes are [2, 4, 3], [3, 5, 3], [5, 2]",
        ),
    ],
)
def test_invalid_operands_are_refused(operands: tuple[Array, ...], code: str, sentence: str) -> None:
    refused = error("attention", *operands)
    assert refused.code == code
    assert refused.detail == f"node {len(operands)} (attention): {sentence}"


def many_heads(*mask: int) -> list[Array]:
    """Return q of four heads, k and v of two, and a mask if a shape is given."""
    rng = np.random.default_rng(1)
    return [rng.normal(size=shape) for shape in [(4, 3, 2), (2, 5, 2), (2, 5, 3), *([mask] if mask else [])]]


@pytest.mark.parametrize("shape", [(), (5,), (3, 5), (1, 3, 5), (4, 3, 5), (4, 1, 1)], ids=str)
def test_grouped_heads_of_k_and_v_serve_adjacent_heads_of_q(shape: tuple[int, ...]) -> None:
    q, k, v, *mask = many_heads(*shape)
    full = np.broadcast_to(mask[0] if mask else 0.0, (4, 3, 5))
    expected = np.stack([attend(q[i], k[i // 2], v[i // 2], full[i]) for i in range(4)])
    np.testing.assert_allclose(run("attention", q, k, v, *mask, grouped=True), expected, 1e-12)


@pytest.mark.parametrize(
    ("operand", "shape", "sentence"),
    [
        (0, (3, 2), "operand 0 (q) must have at least 3 axes, with the heads on axis -3"),
        (1, (3, 5, 2), "operand 1 (k) must have a number of heads on axis -3 that divides the 4 heads of q"),
        (1, (0, 5, 2), "operand 1 (k) must have a number of heads on axis -3 that divides the 4 heads of q"),
        (2, (4, 5, 3), "operand 2 (v) must have extent 2 on axis -3 (the heads of k)"),
        (3, (2, 3, 5), "operand 3 (mask) must have 1 head or 4 heads, as q has, on axis -3"),
        (3, (1, 2, 3, 5), "operand 3 (mask) must have 1 head or 4 heads, as q has, on axis -3"),
    ],
)
def test_mismatched_heads_are_refused(operand: int, shape: tuple[int, ...], sentence: str) -> None:
    operands = many_heads(4, 3, 5)
    operands[operand] = np.zeros(shape)
    refused = error("attention", *operands, grouped=True)
    assert (refused.code, refused.operand) == ("shape_mismatch", operand)
    assert refused.detail == f"node 4 (attention): {sentence}, but has shape {list(shape)}"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_0d_operand_is_refused(place: int) -> None:
    operands = [Q, K, V]
    operands[place] = np.array(1.0)
    assert (refused := error("attention", *operands)).code == "shape_mismatch"
    assert refused.operand == place


def test_tiled_scores_give_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a mask, with mixed dtypes, and with float16, which has an op of its own."""
    monkeypatch.setattr(attention, "HELD_SCORE_BYTES", 0)
    monkeypatch.setattr(attention, "HELD_SCORES_PER_ELEMENT", 0)
    np.testing.assert_allclose(run("attention", Q, K, V, BIAS), attend(Q, K, V, BIAS), 1e-12)
    narrow = Q.astype("float32")
    mixed = run("attention", narrow, K, V)
    assert mixed.dtype == np.float64
    np.testing.assert_allclose(mixed, attend(narrow.astype("float64"), K, V), 1e-12)
    q, k, v = (np.random.default_rng(2).normal(size=(n, 8)).astype("float16") for n in (4, 5, 5))
    halves = run("attention", q, k, v)
    assert halves.dtype == np.float16
    np.testing.assert_allclose(halves, attend(*(x.astype("float64") for x in (q, k, v))), 2**-9, 2**-11)
