"""The way back through attention, a tile at a time: scores are computed anew, from the logarithms that were kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.graph.ir import Value
from engine.graph.op import Array, Namespace, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import TensorType
from engine.oplib import batching
from engine.oplib.attention_formula import Saved, WayBack
from engine.oplib.elementwise import unbroadcast
from engine.oplib.known_numbers import are_finite
from engine.oplib.permutation import shaped
from engine.oplib.score_op import ScoreOp, batch_axes
from engine.oplib.score_tiles import (
    Scores,
    ScoreTile,
    Tiling,
    blas_readable,
    carved,
    copied_bytes,
    hiding_bytes,
    spread,
    tiling,
)

_OPERANDS = ("q", "k", "v", "lse", "delta", "g", "mask?")


class AttentionGradients(ScoreOp):
    """dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ g, each with all leading axes.

    p = exp(scores − lse), and ds = p · (g vᵀ − δ) is the cotangent of the scores. lse and δ are [..., queries, 1].
    """

    name = "attention_gradients"
    operands = _OPERANDS
    several = True
    products = 5

    def infer(self, q: TensorType, k: TensorType, v: TensorType, *others: TensorType, **attrs: Any) -> ResultTypes:
        """q, k and v with all leading axes."""
        lead = batch_axes(q, k, v, *others)
        return tuple(x.with_shape((*lead, *x.shape[-2:])) for x in (q, k, v))

    def forward(self, run: RunContext, *arrays: Array, out: tuple[Array, ...], **attrs: Any) -> None:
        """Added up tile by tile."""
        xp = run.xp
        dq, dk, dv = out
        for result in out:
            result.fill(0)
        back = _Back(run, arrays, attrs)
        memory = xp.empty(_sum_size(back.tiling, *out), dq.dtype)
        for at, p, ds in run.through(back.tiles()):
            _add_product(xp, ds, at.of_keys(back.scores.k), at.of_queries(dq), memory)
            _add_product(xp, ds.swapaxes(-1, -2), at.of_queries(back.scores.q), at.of_keys(dk), memory)
            _add_product(xp, p.swapaxes(-1, -2), at.of_queries(back.g), at.of_keys(dv), memory)
        xp.multiply(dq, attrs["scale"], out=dq)

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """With whole matrices of scores."""
        return WayBack(Saved(*operands), **attrs).again(*g)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """The same, with whole matrices of scores."""
        return WayBack(Saved(*operands), **attrs).by_operands

    def workspace(self, out: Any, *types: TensorType, causal: bool, **attrs: Any) -> int:
        """Those of the tiles, and a product that is added."""
        return _bytes(*types, causal=causal) + types[0].dtype.itemsize * _sum_size(_squares(*types), *out)


class AttentionMaskGradient(ScoreOp):
    """The cotangent of a float mask: ds, as of `AttentionGradients`, summed over what the mask was broadcast along."""

    name = "attention_mask_gradient"
    operands = (*_OPERANDS[:-1], "mask")
    products = 2

    def infer(self, q: TensorType, *others: TensorType, **attrs: Any) -> ResultTypes:
        """The mask's shape."""
        return q.with_shape(others[-1].shape)

    def forward(self, run: RunContext, *arrays: Array, out: Array, **attrs: Any) -> None:
        """Added up tile by tile."""
        xp = run.xp
        back = _Back(run, arrays, attrs)
        out.fill(0)
        aligned = out.reshape((1,) * (len(back.tiling.lead) + 2 - out.ndim) + out.shape)
        for at, _, ds in run.through(back.tiles()):
            part = at.of_mask(aligned)
            axes = tuple(i for i, (e, whole) in enumerate(zip(part.shape, ds.shape, strict=True)) if e != whole)
            xp.add(part, xp.sum(ds, axis=axes, keepdims=True) if axes else ds, out=part)

    def vjp(self, g: Value, y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """With whole matrices of scores."""
        return WayBack(Saved(*operands), **attrs).again(cs=g)

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """A mask for each of N, so that each has a cotangent."""
        n, mask = batching.size(mapped, operands), operands[-1]
        masks = mask if mapped[-1] else mask.broadcast_to(shape=(n, *mask.shape))
        return shaped(super().batch((*mapped[:-1], True), *operands[:-1], masks, **attrs), masks.shape)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """The same, with whole matrices of scores."""
        return (unbroadcast(WayBack(Saved(*operands), **attrs).ds, operands[-1]),)

    def workspace(self, out: Any, *types: TensorType, causal: bool, **attrs: Any) -> int:
        """Those of the tiles, and a sum of one of them."""
        tiles = _squares(*types)
        return _bytes(*types, causal=causal) + types[0].dtype.itemsize * tiles.size


GRADIENTS, MASK_GRADIENT = AttentionGradients(), AttentionMaskGradient()


class _Back:
    """The operands of an op of the way back, and the tiles in which it goes."""

    def __init__(self, run: RunContext, arrays: Sequence[Array], attrs: Mapping[str, Any]) -> None:
        xp = run.xp
        q, k, v, lse, delta, g, *mask = arrays
        self._xp, self._below = xp, attrs["causal"] and are_finite(run, *arrays[:6])
        self.tiling = _squares(*arrays)
        lead = self.tiling.lead
        self.scores = Scores(xp, q, k, mask[0] if mask else None, lead, **attrs)
        self._v, self._lse, self._delta, self.g = (spread(xp, blas_readable(xp, x), lead) for x in (v, lse, delta, g))

    def tiles(self) -> Iterator[tuple[ScoreTile, Array, Array]]:
        """Each tile, its p and its ds, which last until the next one."""
        xp, size = self._xp, self.tiling.size
        memory = xp.empty(2 * size, self.g.dtype)
        for at in self.tiling.tiles(below=self._below):
            p = self.scores.write_tile(at, memory[:size])
            ds = carved(memory[size:], p.shape)
            xp.exp(xp.subtract(p, at.of_queries(self._lse), out=p), out=p)
            xp.matmul(at.of_queries(self.g), at.of_keys(self._v).swapaxes(-1, -2), out=ds)
            xp.multiply(xp.subtract(ds, at.of_queries(self._delta), out=ds), p, out=ds)
            self.scores.hide(at, ds, 0.0)
            yield at, p, ds


def _squares(*operands: Array | TensorType) -> Tiling:
    q, k, *_ = operands
    lead = batch_axes(*operands)
    return tiling(lead, q.shape[-2], k.shape[-2], q.dtype.itemsize, together=2, whole_rows=False)


def _bytes(*types: TensorType, causal: bool) -> int:
    """What `_Back` takes: copies, the two tiles, and what hides in them."""
    q, k, v, lse, delta, g, *mask = types
    tiles = _squares(*types)
    hiding = hiding_bytes(tiles, *mask, causal=causal)
    return copied_bytes(q, k, v, lse, delta, g) + 2 * q.dtype.itemsize * tiles.size + hiding


def _sum_size(tiles: Tiling, *results: Array | TensorType) -> int:
    """Elements of the largest product that is added to a result."""
    return tiles.group * max(tiles.rows, tiles.columns) * max(x.shape[-1] for x in results)


def _add_product(xp: Namespace, a: Array, b: Array, to: Array, memory: Array) -> None:
    xp.add(to, xp.matmul(a, b, out=carved(memory, to.shape)), out=to)
