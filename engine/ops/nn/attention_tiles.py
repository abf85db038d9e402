"""Attention a tile of scores at a time: what it means, its kernel, and the way back."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.graph import Value, shaped
from engine.ir.op import Array, Namespace, Op, ResultTypes
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import BOOL, Shape, TensorType, broadcast
from engine.ops.common import batching
from engine.ops.common.numerics import are_finite
from engine.ops.elementwise.base import unbroadcast
from engine.ops.linalg.matmul import is_readable

#: of the tiles that are worked on together; a core's own cache holds that much, or nearly
TILE_BYTES: Final = 1 << 20
#: fewer queries at a time make slow products
LEAST_ROWS: Final = 16
#: keys of a tile that need not hold whole rows
MOST_COLUMNS: Final = 512
_OPERANDS = ("q", "k", "v", "lse", "delta", "g", "mask?")


class ScoreOp(Op):
    """Base: an op on the scores of q [..., queries, d] and k [..., keys, d].

    All operands have one dtype, float32 or float64, but for a mask, and axes before the last two that broadcast.
    """

    internal = True
    attrs: ClassVar[Mapping[str, Attr]] = {
        "scale": Attr("float", doc="what q kᵀ is multiplied by"),
        "causal": Attr("bool", doc="hide key j from query i where j > i"),
    }
    #: products that each score takes part in: over the d of queries and keys, and over the width of values
    products: ClassVar[int]

    @abstractmethod
    def written_out(self, *operands: Any, **attrs: Any) -> Sequence[Value]:
        """Its results in ops of the registry, which hold whole matrices of scores."""

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """N is one more leading axis, once the ranks agree."""
        aligned = batching.align(mapped, operands)
        return aligned[0].builder.emit(self, aligned, attrs)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """14 for each score, as softmax, and its products: a multiplication and an addition for each step."""
        q, k, v, *_ = types
        scores = math.prod(batch_axes(*types)) * q.shape[-2] * k.shape[-2]
        return scores * (14 + self.products * (q.shape[-1] + v.shape[-1]))


def batch_axes(*types: TensorType) -> Shape:
    """The broadcast of all axes but the last two."""
    return broadcast(*(t.shape[:-2] for t in types))


class Masking(NamedTuple):
    """Way from products of queries and keys to scores. The scale goes to the queries, which are fewer."""

    mask: Value | None
    scale: float
    causal: bool

    def scores(self, q: Value, k: Value) -> Value:
        """[..., queries, keys], −∞ where a key is hidden."""
        scores = (q * self.scale) @ k.transpose()
        if self.mask is not None and self.mask.dtype != BOOL:
            scores = scores + self.mask
        return self.hide(scores, -math.inf)

    def hide(self, scores: Value, fill: float) -> Value:
        """The scores, `fill` where a key is hidden from its query."""
        if self.mask is not None and self.mask.dtype == BOOL:
            scores = self.mask.where(scores, fill)
        if not self.causal:
            return scores
        queries, keys = (scores.builder.arange(n) for n in scores.shape[-2:])
        return (queries.reshape(shape=(*queries.shape, 1)) >= keys).where(scores, fill)

    def by_mask(self, ds: Value) -> Value | None:
        """The cotangent of the mask, of that of the scores."""
        return None if self.mask is None or self.mask.dtype == BOOL else unbroadcast(ds, self.mask)


class Saved(NamedTuple):
    """Values that the way back reads: operands, the logarithm of rows' sums of exponentials, δ, and the cotangent g.

    δ = Σ g·y − the cotangent of those logarithms; both are [..., queries, 1].
    """

    q: Value
    k: Value
    v: Value
    lse: Value
    delta: Value
    g: Value
    mask: Value | None = None


class WayBack:
    """Cotangent of the scores: ds = p · (dp − δ), where s are the scores, p = exp(s − lse) and dp = g vᵀ."""

    def __init__(self, saved: Saved, *, scale: float, causal: bool) -> None:
        self._saved, self._masking, self._scale = saved, Masking(saved.mask, scale, causal), scale
        self._scaled = saved.q * scale
        self._p = (self._masking.scores(saved.q, saved.k) - saved.lse).exp()
        self._centred = saved.g @ saved.v.transpose() - saved.delta
        self.ds = self._masking.hide(self._p * self._centred, 0.0)

    @property
    def by_operands(self) -> tuple[Value, Value, Value]:
        """dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ g."""
        turned = self.ds.transpose(), self._p.transpose()
        return self.ds @ self._saved.k * self._scale, turned[0] @ self._scaled, turned[1] @ self._saved.g

    def again(
        self, cq: Value | None = None, ck: Value | None = None, cv: Value | None = None, cs: Value | None = None
    ) -> list[Value | None]:
        """The cotangents of what is saved, from those of `by_operands` and of ds.

        With t all that arrives at ds, those of dp and p are t · p and t · (dp − δ) + g cvᵀ; that of s is p times that.
        """
        _, k, v, _, _, g, mask = self._saved
        t = self._masking.hide(self._by_ds(cq, ck, cs), 0.0)
        by_dp, by_p = t * self._p, t * self._centred
        by_g = by_dp @ v
        if cv is not None:
            by_p, by_g = by_p + g @ cv.transpose(), by_g + self._p @ cv
        by_s = self._masking.hide(by_p * self._p, 0.0)
        by_q, by_k = by_s @ k * self._scale, by_s.transpose() @ self._scaled
        by_q = by_q if ck is None else by_q + self.ds @ ck * self._scale
        by_k = by_k if cq is None else by_k + self.ds.transpose() @ cq * self._scale
        found = by_q, by_k, by_dp.transpose() @ g, -_row_sum(by_s), -_row_sum(by_dp), by_g
        by_operands: list[Value | None] = list(map(unbroadcast, found, self._saved[:6]))
        return by_operands if mask is None else [*by_operands, self._masking.by_mask(by_s)]

    def _by_ds(self, cq: Value | None, ck: Value | None, cs: Value | None) -> Value:
        """Add what ds receives from dq, from dk and directly."""
        arriving = [] if cs is None else [cs.broadcast_to(shape=self.ds.shape)]
        if cq is not None:
            arriving.append(cq * self._scale @ self._saved.k.transpose())
        if ck is not None:
            arriving.append(self._scaled @ ck.transpose())
        return reduce(add, arriving or [self.ds.full_like(0.0)])


def _row_sum(x: Value) -> Value:
    return x.sum(axes=(-1,), keepdims=True)


# Scores of queries and keys, a tile at a time: a tile stays in a core's own cache, and the whole matrix nowhere.


class ScoreTile(NamedTuple):
    """Place of a tile: neighbouring queries and keys, of one matrix of scores or of neighbouring ones."""

    lead: tuple[int | slice, ...]
    queries: slice
    keys: slice

    def of_queries(self, x: Array) -> Array:
        """The rows of x[..., queries, n] that belong to the tile."""
        return x[self.lead][..., self.queries, :]

    def of_keys(self, x: Array) -> Array:
        """The rows of x[..., keys, n] that belong to the tile."""
        return x[self.lead][..., self.keys, :]

    def of_scores(self, x: Array) -> Array:
        """The part of x[..., queries, keys] that is the tile."""
        return x[self.lead][..., self.queries, self.keys]

    def of_mask(self, x: Array) -> Array:
        """Return `of_scores` for an x with extent 1 on axes along which it is broadcast."""
        index = zip((*self.lead, self.queries, self.keys), x.shape, strict=True)
        return x[tuple(i if e > 1 else 0 if isinstance(i, int) else slice(None) for i, e in index)]


class Tiling(NamedTuple):
    """Cut of scores [*lead, queries, keys]: tiles of at most `rows` × `columns` of `group` matrices."""

    lead: Shape
    queries: int
    keys: int
    group: int
    rows: int
    columns: int

    @property
    def size(self) -> int:
        """Elements of the largest tile."""
        return self.group * self.rows * self.columns

    def tiles(self, *, below: bool) -> Iterator[ScoreTile]:
        """All tiles, those of the same keys one after the other; `below`: without what lies above the diagonal only."""
        for lead in self._groups():
            for first in range(0, self.keys, self.columns):
                for start in range(0, self.queries, self.rows):
                    stop = min(start + self.rows, self.queries)
                    last = min(first + self.columns, self.keys, stop if below else self.keys)
                    if first < last:
                        yield ScoreTile(lead, slice(start, stop), slice(first, last))

    def _groups(self) -> Iterator[tuple[int | slice, ...]]:
        """Indices of matrices, those of a group neighbours along the longest axis."""
        counts = list(self.lead)
        longest = max(range(len(counts)), key=counts.__getitem__, default=0)
        if counts:
            counts[longest] = -(-counts[longest] // self.group)
        for index in np.ndindex(*counts):
            lead: list[int | slice] = [*index]
            if lead:
                lead[longest] = slice(index[longest] * self.group, (index[longest] + 1) * self.group)
            yield tuple(lead)


def tiling(lead: Shape, queries: int, keys: int, itemsize: int, *, together: int, whole_rows: bool) -> Tiling:
    """Tiles of which so many are worked on `together`, of `whole_rows` or of a part of the keys."""
    most = TILE_BYTES // (itemsize * together)
    columns = keys if whole_rows else min(keys, MOST_COLUMNS)
    rows = min(queries, max(LEAST_ROWS, most // columns))
    whole = (rows, columns) == (queries, keys)
    group = min(max(lead, default=1), max(1, most // (rows * columns))) if whole else 1
    return Tiling(lead, queries, keys, group, rows, columns)


class Scores:
    """The scores of q [..., queries, d] and k [..., keys, d] under a mask; leading axes are broadcast to `lead`."""

    def __init__(
        self, xp: Namespace, q: Array, k: Array, mask: Array | None, lead: Shape, *, scale: float, causal: bool
    ) -> None:
        self._xp = xp
        self.q = spread(xp, xp.multiply(q, scale), lead)
        self.k = spread(xp, blas_readable(xp, k), lead)
        self._mask = None if mask is None else xp.broadcast_to(mask, (*lead, q.shape[-2], k.shape[-2]))
        self._causal = causal

    def write_tile(self, at: ScoreTile, memory: Array) -> Array:
        """The tile, in `memory`: −∞ where a key is hidden."""
        xp = self._xp
        q, k = at.of_queries(self.q), at.of_keys(self.k)
        scores = carved(memory, (*q.shape[:-1], k.shape[-2]))
        xp.matmul(q, k.swapaxes(-1, -2), out=scores)
        if self._mask is not None and self._mask.dtype.kind == "f":
            xp.add(scores, at.of_scores(self._mask), out=scores)
        self.hide(at, scores, -math.inf)
        return scores

    def hide(self, at: ScoreTile, scores: Array, fill: float) -> None:
        """Write `fill` where a key is hidden from its query."""
        xp = self._xp
        if self._mask is not None and self._mask.dtype.kind == "b":
            xp.copyto(scores, fill, where=xp.logical_not(at.of_scores(self._mask)))
        if self._causal and at.keys.stop - 1 > at.queries.start:
            queries, keys = (xp.arange(part.start, part.stop) for part in (at.queries, at.keys))
            xp.copyto(scores, fill, where=keys > queries[:, None])


def spread(xp: Namespace, x: Array, lead: Shape) -> Array:
    """Matrices x, broadcast over the leading axes."""
    return xp.broadcast_to(x, (*lead, *x.shape[-2:]))


def blas_readable(xp: Namespace, x: Array) -> Array:
    """x, copied where BLAS cannot read it as it lies."""
    return x if is_readable(x, x.dtype) else xp.ascontiguousarray(x)


def carved(memory: Array, shape: Shape) -> Array:
    """The beginning of flat memory, in this shape."""
    return memory[: math.prod(shape)].reshape(shape)


def copied_bytes(q: TensorType, *others: TensorType) -> int:
    """Bytes of the scaled queries, and of the `others` that `blas_readable` copies."""
    return q.nbytes + sum(x.nbytes for x in others if not is_readable(x, x.dtype))


def hiding_bytes(tiles: Tiling, *mask: TensorType, causal: bool) -> int:
    """Bytes of what says which keys of a tile are hidden."""
    return tiles.size if causal or any(m.dtype.kind == "b" for m in mask) else 0


# The way back through attention, a tile at a time: scores are computed anew, from the logarithms that were kept.


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
        """Count the tiles, and a product that is added."""
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
        """Count the tiles, and a sum of one of them."""
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
    """Count the bytes of `_Back`: copies, the two tiles, and what hides in them."""
    q, k, v, lse, delta, g, *mask = types
    tiles = _squares(*types)
    hiding = hiding_bytes(tiles, *mask, causal=causal)
    return copied_bytes(q, k, v, lse, delta, g) + 2 * q.dtype.itemsize * tiles.size + hiding


def _sum_size(tiles: Tiling, *results: Array | TensorType) -> int:
    """Elements of the largest product that is added to a result."""
    return tiles.group * max(tiles.rows, tiles.columns) * max(x.shape[-1] for x in results)


def _add_product(xp: Namespace, a: Array, b: Array, to: Array, memory: Array) -> None:
    xp.add(to, xp.matmul(a, b, out=carved(memory, to.shape)), out=to)


# Attention a block of queries at a time; the way back is in `attention_gradients`.
#
# The scores of a block stay in a core's own cache. On the way back they are computed anew, so that no memory ever holds
# all of them. T. Dao et al., "FlashAttention" (2022); M. N. Rabe and C. Staats, "Self-attention does not need O(n²)
# memory" (2021).


class AttentionRows(ScoreOp):
    """y as `attention`, and the logarithm of each row's sum of exponentials [..., queries, 1]."""

    name = "attention_rows"
    operands = ("q", "k", "v", "mask?")
    several = True
    products = 2

    def infer(self, q: TensorType, k: TensorType, v: TensorType, *mask: TensorType, **attrs: Any) -> ResultTypes:
        """y and the logarithms."""
        lead = batch_axes(q, k, v, *mask)
        return q.with_shape((*lead, q.shape[-2], v.shape[-1])), q.with_shape((*lead, q.shape[-2], 1))

    def forward(
        self,
        run: RunContext,
        q: Array,
        k: Array,
        v: Array,
        mask: Array | None = None,
        *,
        out: tuple[Array, Array],
        scale: float,
        causal: bool,
    ) -> None:
        """Row block by row block, as `softmax` computes rows."""
        xp = run.xp
        y, lse = out
        lead = y.shape[:-2]
        scores, values = (
            Scores(xp, q, k, mask, lead, scale=scale, causal=causal),
            spread(xp, blas_readable(xp, v), lead),
        )
        tiles = _whole_rows(lead, q, k)
        memory = xp.empty(tiles.size, y.dtype)
        for at in run.through(tiles.tiles(below=causal and are_finite(run, q, k, v))):
            rows, largest = scores.write_tile(at, memory), at.of_queries(lse)
            xp.max(rows, axis=-1, keepdims=True, out=largest)
            xp.exp(xp.subtract(rows, largest, out=rows), out=rows)
            sums = xp.sum(rows, axis=-1, keepdims=True)
            xp.divide(rows, sums, out=rows)
            xp.matmul(rows, at.of_keys(values), out=at.of_queries(y))
            xp.add(largest, xp.log(sums, out=sums), out=largest)

    def vjp(
        self, g: Sequence[Value | None], y: Value, *operands: Value, scale: float, causal: bool
    ) -> Sequence[Value | None]:
        """Use the ops of the backward pass, with the logarithms and δ = Σ g·y − cotangent of the logarithms."""
        q, k, v, *mask = operands
        attrs = {"scale": scale, "causal": causal}
        by_y = y.full_like(0.0) if g[0] is None else g[0]
        delta = (by_y * y.output(0)).sum(axes=(-1,), keepdims=True)
        saved = (q, k, v, y.output(1), delta if g[1] is None else delta - g[1], by_y, *mask)
        found = y.builder.emit(GRADIENTS, saved, attrs)
        by_mask = [y.builder.emit(MASK_GRADIENT, saved, attrs) if m.type.is_differentiable else None for m in mask]
        return [*(unbroadcast(found.output(i), x) for i, x in enumerate((q, k, v))), *by_mask]

    def written_out(
        self, q: Value, k: Value, v: Value, mask: Value | None = None, *, scale: float, causal: bool
    ) -> Sequence[Value]:
        """The formula."""
        scores = Masking(mask, scale, causal).scores(q, k)
        y, lse = scores.softmax() @ v, scores.logsumexp(axes=(-1,), keepdims=True)
        return y, lse.broadcast_to(shape=(*y.shape[:-1], 1))

    def workspace(self, out: Any, *types: TensorType, causal: bool, **attrs: Any) -> int:
        """The copies, a tile and what hides in it, and the sums."""
        q, k, v, *mask = types
        tiles = _whole_rows(out[0].shape[:-2], q, k)
        tile = q.dtype.itemsize * (tiles.size + tiles.group * tiles.rows)
        return copied_bytes(q, k, v) + tile + hiding_bytes(tiles, *mask, causal=causal)


def _whole_rows(lead: Shape, q: Array | TensorType, k: Array | TensorType) -> Tiling:
    return tiling(lead, q.shape[-2], k.shape[-2], q.dtype.itemsize, together=1, whole_rows=True)


ROWS = AttentionRows()
