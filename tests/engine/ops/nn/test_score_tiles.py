"""Tiled attention against whole matrices in NumPy; tiles are made small for these tests."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pytest

from engine import Limits, Program, Statement, TensorType, Values, registry
from engine.compiler.compiler import CompileRequest, plan_call
from engine.ops.nn import attention
from engine.ops.nn import attention_tiles as score_tiles
from engine.ops.nn.attention_tiles import ScoreTile, tiling
from tests.engine.ops.run import Array, grads, run

RNG = np.random.default_rng(0)
#: tolerance for each dtype, for one sum of a few products
CLOSE: Final = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-11}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute all attention in tiles of a few scores."""
    monkeypatch.setattr(attention, "HELD_SCORE_BYTES", 0)
    monkeypatch.setattr(attention, "HELD_SCORES_PER_ELEMENT", 0)
    monkeypatch.setattr(score_tiles, "TILE_BYTES", 8 * 40)
    monkeypatch.setattr(score_tiles, "LEAST_ROWS", 3)
    monkeypatch.setattr(score_tiles, "MOST_COLUMNS", 4)


def whole(
    q: Array, k: Array, v: Array, mask: Array | None, g: Array, *, scale: float | None = None, causal: bool = False
) -> list[Array]:
    """Return y and the gradients of Σ y·g with respect to q, k, v and a float mask, in float64."""
    operands = [np.asarray(x, float) for x in (q, k, v)]
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    visible = np.tri(q.shape[-2], k.shape[-2], dtype=bool) if causal else np.bool_(True)
    visible = visible & mask if mask is not None and mask.dtype == bool else visible
    scores = factor * operands[0] @ operands[1].swapaxes(-1, -2)
    scores = scores + (0.0 if mask is None or mask.dtype == bool else mask.astype(float))
    scores = np.where(visible, scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    y, dp = p @ operands[2], g @ operands[2].swapaxes(-1, -2)
    ds = np.where(visible, p * (dp - (dp * p).sum(-1, keepdims=True)), 0.0)
    gradients = [factor * ds @ operands[1], factor * ds.swapaxes(-1, -2) @ operands[0], p.swapaxes(-1, -2) @ g]
    floats = [q, k, v] if mask is None or mask.dtype == bool else [q, k, v, mask]
    return [y, *(summed(x, like.shape) for x, like in zip([*gradients, ds], floats, strict=False))]


def summed(x: Array, shape: tuple[int, ...]) -> Array:
    """Sum x over the axes that `shape` lacks or has at extent 1."""
    x = x.sum(tuple(range(x.ndim - len(shape))))
    return x.sum(tuple(i for i, e in enumerate(shape) if e != x.shape[i]), keepdims=True)


def check(q: Array, k: Array, v: Array, mask: Array | None = None, **attrs: Any) -> None:
    operands = [q, k, v] if mask is None else [q, k, v, mask]
    assert "attention_rows" in steps(*operands, **attrs)
    value = run("attention", *operands, **attrs)
    g = RNG.normal(size=value.shape).astype(value.dtype)
    _, gradients = grads("attention", *operands, cotangent=g, **attrs)
    expected = whole(q, k, v, mask, g.astype(float), **attrs)
    floats = [x for x in operands if x.dtype.kind == "f"]
    for actual, reference, like in zip([value, *gradients], expected, [value, *floats], strict=True):
        assert (actual.shape, actual.dtype) == (like.shape, like.dtype)
        close = CLOSE[min(actual.dtype, value.dtype, key=lambda d: d.itemsize).name]
        np.testing.assert_allclose(actual, reference, close, close * max(1.0, float(np.abs(reference).max(initial=0))))


def steps(*operands: Array, **attrs: Any) -> list[str]:
    """Return the names of the ops in the value's plan."""
    nodes = [Statement(registry().ops["input"])] * len(operands)
    program = Program(registry(), [*nodes, Statement(registry().ops["attention"], tuple(range(len(operands))), attrs)])
    types = dict(enumerate(map(TensorType.of, operands)))
    return [
        step.op.name
        for step in plan_call(CompileRequest(program, types, Values.of_program(program, [len(nodes)]), Limits()))[
            1
        ].steps
    ]


def draw(*shape: int, dtype: str = "float64") -> Array:
    return RNG.normal(size=shape).astype(dtype)


def masks(queries: int, keys: int) -> dict[str, Array | None]:
    keep = RNG.random((queries, keys)) < 0.6
    keep[:, 0] = True
    return {
        "none": None,
        "keep": keep,
        "keep keys": keep[:1],
        "added": draw(queries, keys),
        "added to keys": draw(keys),
        "added to queries": draw(queries, 1),
        "a batch of masks": draw(3, 1, keys),
    }


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", masks(1, 1))
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 9), (9, 1), (8, 8), (5, 11), (13, 6)])
def test_extents_divisible_and_not_divisible_by_tiles(queries: int, keys: int, kind: str, causal: bool) -> None:
    for d, width in ((1, 3), (3, 2)):
        check(draw(queries, d), draw(keys, d), draw(keys, width), masks(queries, keys)[kind], causal=causal)


LEADS: Final = [
    ((2,), (2,), (2,), (2,)),
    ((2, 1), (3,), (2, 3), (1,)),
    ((), (5,), (), ()),
    ((1,), (1,), (1,), (4, 2, 1)),
    ((2, 17), (2, 17), (2, 17), (2, 1)),
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [(2, 2), (7, 5)])
@pytest.mark.parametrize("leads", LEADS, ids=str)
def test_leading_axes_broadcast(leads: tuple[tuple[int, ...], ...], size: tuple[int, int], causal: bool) -> None:
    queries, keys = size
    q, k, v = (draw(*lead, n, 2) for lead, n in zip(leads[:3], (queries, keys, keys), strict=True))
    for mask in (None, draw(*leads[3], queries, keys), draw(*leads[3], 1, keys) > -9):
        check(q, k, v, mask, causal=causal)


@pytest.mark.parametrize("dtypes", [("float32",) * 4, ("float16",) * 4, ("float32", "float64", "float16", "float32")])
def test_dtypes(dtypes: tuple[str, ...]) -> None:
    q, k, v = draw(2, 7, 3, dtype=dtypes[0]), draw(2, 9, 3, dtype=dtypes[1]), draw(2, 9, 2, dtype=dtypes[2])
    check(q, k, v, draw(7, 9, dtype=dtypes[3]), scale=0.7)
    check(q, k, v, causal=True)


def test_strided_operands() -> None:
    q, k, v = draw(3, 7, 2), draw(2, 9, 6)[:, ::2, ::3], draw(5, 2)[::-1]
    check(q.swapaxes(1, 2)[:, :, :].swapaxes(1, 2), k[:1], v)


def test_values_or_queries_of_zero_width() -> None:
    assert run("attention", draw(7, 2), draw(9, 2), draw(9, 0)).shape == (7, 0)
    check(draw(7, 0), draw(9, 0), draw(9, 2), scale=1.0)


def test_empty_queries_or_keys_are_not_tiled() -> None:
    assert run("attention", draw(0, 2), draw(9, 2), draw(9, 1)).shape == (0, 1)
    assert "attention_rows" not in steps(draw(7, 2), draw(0, 2), draw(0, 1))


SPECIAL: Final = (np.nan, np.inf, -np.inf)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", ["none", "keep", "added to keys", "hidden row", "added -inf"])
@pytest.mark.parametrize("at", range(4))
def test_non_finite_values_match_the_formula(monkeypatch: pytest.MonkeyPatch, at: int, mask: str, causal: bool) -> None:
    """Anywhere, hidden or not. For an infinite cotangent, NaN of the formula may be ±∞ in tiles."""
    by_kind = {**masks(7, 9), "hidden row": np.arange(7)[:, None] + 0 * np.arange(9) != 3}
    by_kind["added -inf"] = np.where(by_kind["hidden row"], 0.0, -np.inf)
    for special in SPECIAL:
        for row in (0, 4, 6) if np.isnan(special) else (4,):
            operands = [draw(7, 2), draw(9, 2), draw(9, 2), draw(7, 2)]
            operands[at][row, 1] = special
            *given, g = [*operands[:3], *([] if by_kind[mask] is None else [by_kind[mask]]), operands[3]]
            value, gradients = grads("attention", *given, cotangent=g, causal=causal)
            with monkeypatch.context() as patched:
                patched.setattr(attention, "HELD_SCORE_BYTES", math.inf)
                reference, reference_gradients = grads("attention", *given, cotangent=g, causal=causal)
            compared = [value, *gradients], [reference, *reference_gradients]
            if at == 3 and np.isinf(special):
                compared = tuple([np.where(np.isfinite(x), x, np.nan) for x in side] for side in compared)
            for actual, expected in zip(*compared, strict=True):
                np.testing.assert_allclose(actual, expected, 1e-10, 1e-11)


@pytest.mark.parametrize("whole_rows", [False, True])
@pytest.mark.parametrize("lead", [(), (3,), (2, 5), (40, 2)])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (3, 2), (7, 9), (30, 4), (4, 30)])
def test_tiles_cover_every_score_once(lead: tuple[int, ...], queries: int, keys: int, whole_rows: bool) -> None:
    tiles = tiling(lead, queries, keys, 8, together=1, whole_rows=whole_rows)
    for below in (False, True):
        visits = np.zeros((*lead, queries, keys), int)
        for tile in tiles.tiles(below=below):
            part = tile.of_scores(visits)
            assert 0 < part.size <= tiles.size
            part += 1
        assert visits.max() == 1
        hidden = np.arange(keys) > np.arange(queries)[:, None] if below else np.zeros((queries, keys), bool)
        assert (visits[..., ~hidden] == 1).all()
    assert tiles.size <= max(40, 3 * (keys if whole_rows else 4))


def test_mask_tile_keeps_broadcast_axes() -> None:
    tile = ScoreTile((1, slice(2, 4)), slice(0, 3), slice(4, 6))
    assert tile.of_mask(np.empty((1, 5, 1, 8))).shape == (2, 1, 2)
