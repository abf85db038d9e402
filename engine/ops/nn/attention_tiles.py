"""Attention one tile of scores at a time: kernels of the forward and backward pass, and their formulas.

A matrix of scores [queries, keys] is large compared to q, k and v. The forward pass computes a block of its rows, takes
the softmax, multiplies it with v, and reuses the memory for the next block; it stores one number per query, the
logarithm lse of the sum of exponentials. The backward pass computes the scores of each tile again: p = exp(s − lse) is
the softmax without a second pass over the row. Tiles fit into a core's cache, and no matrix of scores is ever in
memory.

Rules of these ops are written with whole matrices of scores: `AttentionBackward` has the formulas, for second
derivatives and `written_out`.
"""

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
from engine.ops.common.numerics import known_finite
from engine.ops.elementwise.base import unbroadcast
from engine.ops.linalg.matmul import is_readable

#: bytes of the tiles that are used together: about the size of a core's own cache
TILE_BYTES: Final = 1 << 20
#: queries of a tile at least: with fewer, products are slow
LEAST_ROWS: Final = 16
#: keys of a tile at most, unless it has to hold whole rows
MOST_COLUMNS: Final = 512
_OPERANDS = ("q", "k", "v", "lse", "delta", "g", "mask?")


class ScoreOp(Op):
    """Base of ops on the scores of q [..., queries, d] and k [..., keys, d].

    All operands have one dtype, float32 or float64, except a mask. Their axes before the last two broadcast.
    """

    internal = True
    is_product = True
    attrs: ClassVar[Mapping[str, Attr]] = {
        "scale": Attr("float", doc="factor of q kᵀ"),
        "causal": Attr("bool", doc="whether to hide key j from query i if j > i"),
    }
    #: matrix products that each score takes part in, over d or over the width of v
    products: ClassVar[int]

    @abstractmethod
    def written_out(self, *operands: Any, **attrs: Any) -> Sequence[Value]:
        """Write the results in ops of the registry, with whole matrices of scores."""

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Align the ranks; N is then one more leading axis."""
        aligned = batching.align(mapped, operands)
        return aligned[0].builder.emit(self, aligned, attrs)

    def flops(self, out: ResultTypes, *types: TensorType, **attrs: Any) -> int:
        """Return 14 FLOPs for each score, as for softmax, plus two for each step of its products."""
        q, k, v, *_ = types
        scores = math.prod(batch_axes(*types)) * q.shape[-2] * k.shape[-2]
        return scores * (14 + self.products * (q.shape[-1] + v.shape[-1]))


def batch_axes(*types: TensorType) -> Shape:
    """Broadcast all axes but the last two."""
    return broadcast(*(t.shape[:-2] for t in types))


class Masking(NamedTuple):
    """Step from products of queries and keys to scores. It scales q, which has fewer elements than the scores."""

    mask: Value | None
    scale: float
    causal: bool

    def scores(self, q: Value, k: Value) -> Value:
        """Return the scores [..., queries, keys], −∞ for hidden keys."""
        scores = (q * self.scale) @ k.transpose()
        if self.mask is not None and self.mask.dtype != BOOL:
            scores = scores + self.mask
        return self.hide(scores, -math.inf)

    def hide(self, scores: Value, fill: float) -> Value:
        """Return the scores with `fill` for keys hidden from their query."""
        if self.mask is not None and self.mask.dtype == BOOL:
            scores = self.mask.where(scores, fill)
        if not self.causal:
            return scores
        queries, keys = (scores.builder.arange(n) for n in scores.shape[-2:])
        return (queries.reshape(shape=(*queries.shape, 1)) >= keys).where(scores, fill)

    def mask_gradient(self, ds: Value) -> Value | None:
        """Return the cotangent of a float mask from that of the scores; None for other masks."""
        return None if self.mask is None or self.mask.dtype == BOOL else unbroadcast(ds, self.mask)


class SavedValues(NamedTuple):
    """Values that the backward pass reads: operands, lse, δ and the cotangent g of y.

    lse [..., queries, 1] is the logarithm of each row's sum of exponentials, δ = Σ g·y − the cotangent of lse.
    """

    q: Value
    k: Value
    v: Value
    lse: Value
    delta: Value
    g: Value
    mask: Value | None = None


class AttentionBackward:
    """Backward pass with whole matrices of scores: ds = p · (dp − δ), with p = exp(s − lse) and dp = g vᵀ."""

    def __init__(self, saved: SavedValues, *, scale: float, causal: bool) -> None:
        self._saved, self._masking, self._scale = saved, Masking(saved.mask, scale, causal), scale
        self._scaled = saved.q * scale
        self._p = (self._masking.scores(saved.q, saved.k) - saved.lse).exp()
        self._centred = saved.g @ saved.v.transpose() - saved.delta
        self.ds = self._masking.hide(self._p * self._centred, 0.0)

    @property
    def operand_gradients(self) -> tuple[Value, Value, Value]:
        """dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ g."""
        transposed = self.ds.transpose(), self._p.transpose()
        return self.ds @ self._saved.k * self._scale, transposed[0] @ self._scaled, transposed[1] @ self._saved.g

    def second_order(
        self, cq: Value | None = None, ck: Value | None = None, cv: Value | None = None, cs: Value | None = None
    ) -> list[Value | None]:
        """Return the cotangents of the saved values, from those of dq, dk, dv (`cq`, `ck`, `cv`) and ds (`cs`).

        With t the whole cotangent of ds, those of dp and p are t · p and t · (dp − δ) + g cvᵀ; that of s is p times the
        latter.
        """
        _, k, v, _, _, g, mask = self._saved
        t = self._masking.hide(self._ds_cotangent(cq, ck, cs), 0.0)
        dp_cotangent, p_cotangent = t * self._p, t * self._centred
        g_cotangent = dp_cotangent @ v
        if cv is not None:
            p_cotangent, g_cotangent = p_cotangent + g @ cv.transpose(), g_cotangent + self._p @ cv
        s_cotangent = self._masking.hide(p_cotangent * self._p, 0.0)
        q_cotangent, k_cotangent = s_cotangent @ k * self._scale, s_cotangent.transpose() @ self._scaled
        q_cotangent = q_cotangent if ck is None else q_cotangent + self.ds @ ck * self._scale
        k_cotangent = k_cotangent if cq is None else k_cotangent + self.ds.transpose() @ cq * self._scale
        broadcast_cotangents = (
            q_cotangent,
            k_cotangent,
            dp_cotangent.transpose() @ g,
            -_row_sum(s_cotangent),
            -_row_sum(dp_cotangent),
            g_cotangent,
        )
        cotangents: list[Value | None] = list(map(unbroadcast, broadcast_cotangents, self._saved[:6]))
        return cotangents if mask is None else [*cotangents, self._masking.mask_gradient(s_cotangent)]

    def _ds_cotangent(self, cq: Value | None, ck: Value | None, cs: Value | None) -> Value:
        """Add the cotangents that reach ds through dq, through dk and directly."""
        terms = [] if cs is None else [cs.broadcast_to(shape=self.ds.shape)]
        if cq is not None:
            terms.append(cq * self._scale @ self._saved.k.transpose())
        if ck is not None:
            terms.append(self._scaled @ ck.transpose())
        return reduce(add, terms or [self.ds.full_like(0.0)])


def _row_sum(x: Value) -> Value:
    return x.sum(axes=(-1,), keepdims=True)


# Tiles of scores


class ScoreTile(NamedTuple):
    """Position of a tile: adjacent queries and keys, in one matrix of scores or several adjacent ones."""

    lead: tuple[int | slice, ...]
    queries: slice
    keys: slice

    def of_queries(self, x: Array) -> Array:
        """Return the tile's rows of x[..., queries, n]."""
        return x[self.lead][..., self.queries, :]

    def of_keys(self, x: Array) -> Array:
        """Return the tile's rows of x[..., keys, n]."""
        return x[self.lead][..., self.keys, :]

    def of_scores(self, x: Array) -> Array:
        """Return the tile's part of x[..., queries, keys]."""
        return x[self.lead][..., self.queries, self.keys]

    def of_mask(self, x: Array) -> Array:
        """Return the tile's part of an x that has extent 1 on axes along which it broadcasts."""
        index = zip((*self.lead, self.queries, self.keys), x.shape, strict=True)
        return x[tuple(i if e > 1 else 0 if isinstance(i, int) else slice(None) for i, e in index)]


class Tiling(NamedTuple):
    """Partition of scores [*lead, queries, keys] into tiles of at most `rows` × `columns`, of `group` matrices."""

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
        """Yield all tiles, grouped by their keys. With `below`, skip those that lie entirely above the diagonal."""
        for lead in self._groups():
            for first in range(0, self.keys, self.columns):
                for start in range(0, self.queries, self.rows):
                    stop = min(start + self.rows, self.queries)
                    last = min(first + self.columns, self.keys, stop if below else self.keys)
                    if first < last:
                        yield ScoreTile(lead, slice(start, stop), slice(first, last))

    def _groups(self) -> Iterator[tuple[int | slice, ...]]:
        """Yield indices of matrices. Those of a group are adjacent along the longest axis."""
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
    """Choose tiles of whole rows or parts of them, small enough that `together` of them fit into the cache."""
    tile_elements = TILE_BYTES // (itemsize * together)
    columns = keys if whole_rows else min(keys, MOST_COLUMNS)
    rows = min(queries, max(LEAST_ROWS, tile_elements // columns))
    is_one_tile = (rows, columns) == (queries, keys)
    group = min(max(lead, default=1), max(1, tile_elements // (rows * columns))) if is_one_tile else 1
    return Tiling(lead, queries, keys, group, rows, columns)


class Scores:
    """Scores of q [..., queries, d] and k [..., keys, d] under a mask, with leading axes broadcast to `lead`."""

    def __init__(
        self, xp: Namespace, q: Array, k: Array, mask: Array | None, lead: Shape, *, scale: float, causal: bool
    ) -> None:
        self._xp = xp
        self.q = broadcast_matrices(xp, xp.multiply(q, scale), lead)
        self.k = broadcast_matrices(xp, blas_readable(xp, k), lead)
        self._mask = None if mask is None else xp.broadcast_to(mask, (*lead, q.shape[-2], k.shape[-2]))
        self._causal = causal

    def write_tile(self, tile: ScoreTile, memory: Array) -> Array:
        """Compute a tile in `memory`, with −∞ for hidden keys."""
        xp = self._xp
        q, k = tile.of_queries(self.q), tile.of_keys(self.k)
        scores = view_as(memory, (*q.shape[:-1], k.shape[-2]))
        xp.matmul(q, k.swapaxes(-1, -2), out=scores)
        if self._mask is not None and self._mask.dtype.kind == "f":
            xp.add(scores, tile.of_scores(self._mask), out=scores)
        self.hide(tile, scores, -math.inf)
        return scores

    def hide(self, tile: ScoreTile, scores: Array, fill: float) -> None:
        """Write `fill` for keys hidden from their query."""
        xp = self._xp
        if self._mask is not None and self._mask.dtype.kind == "b":
            xp.copyto(scores, fill, where=xp.logical_not(tile.of_scores(self._mask)))
        if self._causal and tile.keys.stop - 1 > tile.queries.start:
            queries, keys = (xp.arange(span.start, span.stop) for span in (tile.queries, tile.keys))
            xp.copyto(scores, fill, where=keys > queries[:, None])


def broadcast_matrices(xp: Namespace, x: Array, lead: Shape) -> Array:
    """Broadcast the matrices x over the leading axes."""
    return xp.broadcast_to(x, (*lead, *x.shape[-2:]))


def blas_readable(xp: Namespace, x: Array) -> Array:
    """Return x, copied if BLAS cannot read its layout."""
    return x if is_readable(x, x.dtype) else xp.ascontiguousarray(x)


def view_as(memory: Array, shape: Shape) -> Array:
    """Return the beginning of flat memory in this shape."""
    return memory[: math.prod(shape)].reshape(shape)


def copied_bytes(q: TensorType, *others: TensorType) -> int:
    """Count the bytes of the scaled queries, and of the `others` that `blas_readable` copies."""
    return q.nbytes + sum(x.nbytes for x in others if not is_readable(x, x.dtype))


def hiding_bytes(tiles: Tiling, *mask: TensorType, causal: bool) -> int:
    """Count the bytes of the boolean array that marks a tile's hidden keys."""
    return tiles.size if causal or any(m.dtype.kind == "b" for m in mask) else 0


# The backward pass, one tile at a time: it computes scores again, from the saved logarithms.


class AttentionGradients(ScoreOp):
    """dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ g, each with all leading axes.

    p = exp(scores − lse), and ds = p · (g vᵀ − δ) is the cotangent of the scores. lse and δ are [..., queries, 1].
    """

    name = "attention_gradients"
    operands = _OPERANDS
    several = True
    products = 5

    def infer(self, q: TensorType, k: TensorType, v: TensorType, *others: TensorType, **attrs: Any) -> ResultTypes:
        """Return the types of q, k and v with all leading axes."""
        lead = batch_axes(q, k, v, *others)
        return tuple(x.with_shape((*lead, *x.shape[-2:])) for x in (q, k, v))

    def forward(self, run: RunContext, *arrays: Array, out: tuple[Array, ...], **attrs: Any) -> None:
        """Accumulate the results tile by tile."""
        xp = run.xp
        dq, dk, dv = out
        for result in out:
            result.fill(0)
        backward = _BackwardTiles(run, arrays, attrs)
        memory = xp.empty(_sum_size(backward.tiling, *out), dq.dtype)
        for tile, p, ds in run.checked(backward.tiles()):
            _add_product(xp, ds, tile.of_keys(backward.scores.k), tile.of_queries(dq), memory)
            _add_product(xp, ds.swapaxes(-1, -2), tile.of_queries(backward.scores.q), tile.of_keys(dk), memory)
            _add_product(xp, p.swapaxes(-1, -2), tile.of_queries(backward.g), tile.of_keys(dv), memory)
        xp.multiply(dq, attrs["scale"], out=dq)

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """Differentiate with whole matrices of scores."""
        return AttentionBackward(SavedValues(*operands), **attrs).second_order(*g)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write the same with whole matrices of scores."""
        return AttentionBackward(SavedValues(*operands), **attrs).operand_gradients

    def workspace(self, out: Any, *types: TensorType, causal: bool, **attrs: Any) -> int:
        """Count the bytes of the tiles, and of a product before it is added."""
        return _backward_bytes(*types, causal=causal) + types[0].dtype.itemsize * _sum_size(
            _backward_tiling(*types), *out
        )


class AttentionMaskGradient(ScoreOp):
    """Cotangent of a float mask: ds as in `AttentionGradients`, summed over the axes the mask was broadcast along."""

    name = "attention_mask_gradient"
    operands = (*_OPERANDS[:-1], "mask")
    products = 2

    def infer(self, q: TensorType, *others: TensorType, **attrs: Any) -> ResultTypes:
        """Return the mask's shape."""
        return q.with_shape(others[-1].shape)

    def forward(self, run: RunContext, *arrays: Array, out: Array, **attrs: Any) -> None:
        """Accumulate the result tile by tile."""
        xp = run.xp
        backward = _BackwardTiles(run, arrays, attrs)
        out.fill(0)
        aligned = out.reshape((1,) * (len(backward.tiling.lead) + 2 - out.ndim) + out.shape)
        for tile, _, ds in run.checked(backward.tiles()):
            part = tile.of_mask(aligned)
            axes = tuple(i for i, (e, extent) in enumerate(zip(part.shape, ds.shape, strict=True)) if e != extent)
            xp.add(part, xp.sum(ds, axis=axes, keepdims=True) if axes else ds, out=part)

    def vjp(self, g: Value, y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """Differentiate with whole matrices of scores."""
        return AttentionBackward(SavedValues(*operands), **attrs).second_order(cs=g)

    def batch(self, mapped: Sequence[bool], *operands: Value, **attrs: Any) -> Value:
        """Broadcast the mask to one per example, so that each gets a cotangent."""
        n, mask = batching.batch_size(mapped, operands), operands[-1]
        masks = mask if mapped[-1] else mask.broadcast_to(shape=(n, *mask.shape))
        return shaped(super().batch((*mapped[:-1], True), *operands[:-1], masks, **attrs), masks.shape)

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write the same with whole matrices of scores."""
        return (unbroadcast(AttentionBackward(SavedValues(*operands), **attrs).ds, operands[-1]),)

    def workspace(self, out: Any, *types: TensorType, causal: bool, **attrs: Any) -> int:
        """Count the bytes of the tiles, and of a sum of one tile."""
        tiles = _backward_tiling(*types)
        return _backward_bytes(*types, causal=causal) + types[0].dtype.itemsize * tiles.size


GRADIENTS, MASK_GRADIENT = AttentionGradients(), AttentionMaskGradient()


class _BackwardTiles:
    """Tiles of the backward pass on the operands of one of its ops."""

    def __init__(self, run: RunContext, arrays: Sequence[Array], attrs: Mapping[str, Any]) -> None:
        xp = run.xp
        q, k, v, lse, delta, g, *mask = arrays
        # tiles above the diagonal can be skipped only if no infinity or NaN in them would reach the results
        self._xp, self._below = xp, attrs["causal"] and known_finite(run, *arrays[:6])
        self.tiling = _backward_tiling(*arrays)
        lead = self.tiling.lead
        self.scores = Scores(xp, q, k, mask[0] if mask else None, lead, **attrs)
        self._v, self._lse, self._delta, self.g = (
            broadcast_matrices(xp, blas_readable(xp, x), lead) for x in (v, lse, delta, g)
        )

    def tiles(self) -> Iterator[tuple[ScoreTile, Array, Array]]:
        """Yield each tile with its p and ds, which are overwritten by the next one."""
        xp, size = self._xp, self.tiling.size
        memory = xp.empty(2 * size, self.g.dtype)
        for tile in self.tiling.tiles(below=self._below):
            p = self.scores.write_tile(tile, memory[:size])
            ds = view_as(memory[size:], p.shape)
            xp.exp(xp.subtract(p, tile.of_queries(self._lse), out=p), out=p)
            xp.matmul(tile.of_queries(self.g), tile.of_keys(self._v).swapaxes(-1, -2), out=ds)
            xp.multiply(xp.subtract(ds, tile.of_queries(self._delta), out=ds), p, out=ds)
            self.scores.hide(tile, ds, 0.0)
            yield tile, p, ds


def _backward_tiling(*operands: Array | TensorType) -> Tiling:
    q, k, *_ = operands
    lead = batch_axes(*operands)
    return tiling(lead, q.shape[-2], k.shape[-2], q.dtype.itemsize, together=2, whole_rows=False)


def _backward_bytes(*types: TensorType, causal: bool) -> int:
    """Count the bytes of `_BackwardTiles`: copies, two tiles, and the marks of hidden keys."""
    q, k, v, lse, delta, g, *mask = types
    tiles = _backward_tiling(*types)
    hiding = hiding_bytes(tiles, *mask, causal=causal)
    return copied_bytes(q, k, v, lse, delta, g) + 2 * q.dtype.itemsize * tiles.size + hiding


def _sum_size(tiles: Tiling, *results: Array | TensorType) -> int:
    """Return the elements of the largest product that is added to a result."""
    return tiles.group * max(tiles.rows, tiles.columns) * max(x.shape[-1] for x in results)


def _add_product(xp: Namespace, a: Array, b: Array, total: Array, memory: Array) -> None:
    xp.add(total, xp.matmul(a, b, out=view_as(memory, total.shape)), out=total)


# The forward pass, one block of queries at a time. Blocks have whole rows, so that softmax needs no running maximum.
# T. Dao et al., "FlashAttention" (2022); M. N. Rabe and C. Staats, "Self-attention does not need O(n²) memory" (2021).


class AttentionRows(ScoreOp):
    """y as in `attention`, and the logarithm of each row's sum of exponentials [..., queries, 1]."""

    name = "attention_rows"
    operands = ("q", "k", "v", "mask?")
    several = True
    products = 2

    def infer(self, q: TensorType, k: TensorType, v: TensorType, *mask: TensorType, **attrs: Any) -> ResultTypes:
        """Return the types of y and the logarithms."""
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
        """Compute one block of rows at a time, each row as `softmax` does."""
        xp = run.xp
        y, lse = out
        lead = y.shape[:-2]
        scores, values = (
            Scores(xp, q, k, mask, lead, scale=scale, causal=causal),
            broadcast_matrices(xp, blas_readable(xp, v), lead),
        )
        tiles = _row_tiling(lead, q, k)
        memory = xp.empty(tiles.size, y.dtype)
        for tile in run.checked(tiles.tiles(below=causal and known_finite(run, q, k, v))):
            rows, largest = scores.write_tile(tile, memory), tile.of_queries(lse)
            xp.max(rows, axis=-1, keepdims=True, out=largest)
            xp.exp(xp.subtract(rows, largest, out=rows), out=rows)
            sums = xp.sum(rows, axis=-1, keepdims=True)
            xp.divide(rows, sums, out=rows)
            xp.matmul(rows, tile.of_keys(values), out=tile.of_queries(y))
            # lse, in the memory of the maxima: exponentials were taken relative to these
            xp.add(largest, xp.log(sums, out=sums), out=largest)

    def vjp(
        self, g: Sequence[Value | None], y: Value, *operands: Value, scale: float, causal: bool
    ) -> Sequence[Value | None]:
        """Use the ops of the backward pass, with the logarithms and δ = Σ g·y − cotangent of the logarithms."""
        q, k, v, *mask = operands
        attrs = {"scale": scale, "causal": causal}
        y_cotangent = y.full_like(0.0) if g[0] is None else g[0]
        delta = (y_cotangent * y.output(0)).sum(axes=(-1,), keepdims=True)
        saved = (q, k, v, y.output(1), delta if g[1] is None else delta - g[1], y_cotangent, *mask)
        gradients = y.builder.emit(GRADIENTS, saved, attrs)
        mask_gradients = [
            y.builder.emit(MASK_GRADIENT, saved, attrs) if m.type.is_differentiable else None for m in mask
        ]
        return [*(unbroadcast(gradients.output(i), x) for i, x in enumerate((q, k, v))), *mask_gradients]

    def written_out(
        self, q: Value, k: Value, v: Value, mask: Value | None = None, *, scale: float, causal: bool
    ) -> Sequence[Value]:
        """Write the formula with whole matrices of scores."""
        scores = Masking(mask, scale, causal).scores(q, k)
        y, lse = scores.softmax() @ v, scores.logsumexp(axes=(-1,), keepdims=True)
        return y, lse.broadcast_to(shape=(*y.shape[:-1], 1))

    def workspace(self, out: Any, *types: TensorType, causal: bool, **attrs: Any) -> int:
        """Count the bytes of the copies, a tile, its hidden keys, and the sums."""
        q, k, v, *mask = types
        tiles = _row_tiling(out[0].shape[:-2], q, k)
        tile = q.dtype.itemsize * (tiles.size + tiles.group * tiles.rows)
        return copied_bytes(q, k, v) + tile + hiding_bytes(tiles, *mask, causal=causal)


def _row_tiling(lead: Shape, q: Array | TensorType, k: Array | TensorType) -> Tiling:
    return tiling(lead, q.shape[-2], k.shape[-2], q.dtype.itemsize, together=1, whole_rows=True)


ROWS = AttentionRows()
