"""Attention a block of queries at a time; the way back is in `attention_gradients`.

The scores of a block stay in a core's own cache. On the way back they are computed anew, so that no memory ever holds
all of them. T. Dao et al., "FlashAttention" (2022); M. N. Rabe and C. Staats, "Self-attention does not need O(n²)
memory" (2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.graph.ir import Value
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import Shape, TensorType
from engine.oplib.attention_formula import Masking
from engine.oplib.attention_gradients import GRADIENTS, MASK_GRADIENT
from engine.oplib.elementwise import unbroadcast
from engine.oplib.known_numbers import are_finite
from engine.oplib.score_op import ScoreOp, batch_axes
from engine.oplib.score_tiles import (
    Scores,
    Tiling,
    blas_readable,
    copied_bytes,
    hiding_bytes,
    spread,
    tiling,
)


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
        """By the ops of the way back, from the logarithms and δ = Σ g·y, less the cotangent of the logarithms."""
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
