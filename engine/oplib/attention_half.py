"""Attention of halves, computed in float32: ops that hand on halves and float32 logarithms, as cards' libraries do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from engine.graph.ir import Value
from engine.graph.op import Array, ResultTypes
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import FLOAT16, FLOAT32, TensorType
from engine.oplib.attention_formula import Masking, Saved, WayBack
from engine.oplib.attention_gradients import GRADIENTS
from engine.oplib.attention_rows import ROWS
from engine.oplib.elementwise import unbroadcast
from engine.oplib.score_op import ScoreOp, batch_axes

#: what rows of queries, keys and values are a multiple of, and how long they are at most: so libraries have it
WIDTHS: Final = 8
MOST_WIDTH: Final = 128


def is_half_attention(q: TensorType, k: TensorType, v: TensorType, *mask: TensorType) -> bool:
    """Whether these ops are for it: halves, with one set of leading axes, no mask, and a key for each query."""
    types = (q, k, v)
    fits = all(x.dtype == FLOAT16 and x.shape[:-2] == q.shape[:-2] and x.size for x in types)
    return fits and not mask and all(x.shape[-1] % WIDTHS == 0 and x.shape[-1] <= MOST_WIDTH for x in types)


class HalfRows(ScoreOp):
    """y as `attention`, in float16, and the logarithms of rows' sums of exponentials [..., queries, 1], in float32."""

    name = "attention_half_rows"
    operands = ("q", "k", "v")
    several = True
    products = 2

    def infer(self, q: TensorType, k: TensorType, v: TensorType, **attrs: Any) -> ResultTypes:
        """y and the logarithms."""
        lead = (*batch_axes(q, k, v), q.shape[-2])
        return q.with_shape((*lead, v.shape[-1])), TensorType((*lead, 1), FLOAT32)

    def forward(self, run: RunContext, *arrays: Array, out: tuple[Array, Array], **attrs: Any) -> None:
        """As `attention_rows`, on float32."""
        y, lse = out
        found = run.xp.empty(y.shape, FLOAT32)
        ROWS.forward(run, *(x.astype(FLOAT32) for x in arrays), out=(found, lse), **attrs)
        y[...] = found

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """By the op of the way back, unless somebody differentiates the logarithms."""
        by_y = y.output(0).full_like(0.0) if g[0] is None else g[0]
        saved = (*operands, y.output(0), y.output(1), by_y)
        if g[1] is None:
            found = y.builder.emit(HALF_GRADIENTS, saved, attrs)
        else:
            widened = _saved(*saved)
            found = y.builder.emit(GRADIENTS, widened._replace(delta=widened.delta - g[1])[:6], attrs)
        return [unbroadcast(_halved(found.output(i)), x) for i, x in enumerate(operands)]

    def written_out(self, q: Value, k: Value, v: Value, *, scale: float, causal: bool) -> Sequence[Value]:
        """The formula."""
        scores = Masking(None, scale, causal).scores(_widened(q), _widened(k))
        y, lse = scores.softmax() @ _widened(v), scores.logsumexp(axes=(-1,), keepdims=True)
        return _halved(y), lse.broadcast_to(shape=(*y.shape[:-1], 1))

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """All of it once more in float32, and what works there."""
        wide, y = [x.with_dtype(FLOAT32) for x in types], out[0].with_dtype(FLOAT32)
        copied: int = sum(x.nbytes for x in (*wide, y))
        return copied + ROWS.workspace((y, out[1]), *wide, **attrs)


class HalfGradients(ScoreOp):
    """dq, dk and dv in float16, as `AttentionGradients`, of y and its cotangent g in place of δ = Σ g·y."""

    name = "attention_half_gradients"
    operands = ("q", "k", "v", "y", "lse", "g")
    several = True
    products = 5

    def infer(self, q: TensorType, k: TensorType, v: TensorType, *others: TensorType, **attrs: Any) -> ResultTypes:
        """q, k and v with all leading axes."""
        lead = batch_axes(q, k, v, *others)
        return tuple(x.with_shape((*lead, *x.shape[-2:])) for x in (q, k, v))

    def forward(self, run: RunContext, *arrays: Array, out: tuple[Array, ...], **attrs: Any) -> None:
        """As `attention_gradients`, on float32."""
        xp = run.xp
        q, k, v, y, lse, g = (x.astype(FLOAT32) for x in arrays)
        delta = xp.sum(xp.multiply(y, g, out=y), axis=-1, keepdims=True)
        found = tuple(xp.empty(x.shape, FLOAT32) for x in out)
        GRADIENTS.forward(run, q, k, v, lse, delta, g, out=found, **attrs)
        for half, single in zip(out, found, strict=True):
            half[...] = single

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """With whole matrices of scores; δ is g·y, added up."""
        saved, by_results = _saved(*operands), [None if x is None else _widened(x) for x in g]
        *others, by_lse, by_delta, by_g = WayBack(saved, **attrs).again(*by_results)
        assert by_delta is not None
        assert by_g is not None
        of_y, of_g = by_delta * saved.g, by_g + by_delta * _widened(operands[3])
        found = (*others, of_y, by_lse, of_g)
        return [None if x is None else x.cast(dtype=to.dtype) for x, to in zip(found, operands, strict=True)]

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """The same, with whole matrices of scores."""
        return [_halved(x) for x in WayBack(_saved(*operands), **attrs).by_operands]

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """All of it once more in float32, and what works there."""
        q, k, v, y, lse, g = (x.with_dtype(FLOAT32) for x in types)
        wide = tuple(x.with_dtype(FLOAT32) for x in out)
        copied: int = sum(x.nbytes for x in (q, k, v, y, lse, lse, g, *wide))
        return copied + GRADIENTS.workspace(wide, q, k, v, lse, lse, g, **attrs)


HALF_ROWS, HALF_GRADIENTS = HalfRows(), HalfGradients()


def _saved(q: Value, k: Value, v: Value, y: Value, lse: Value, g: Value) -> Saved:
    """What the way back in float32 reads."""
    q, k, v, y, g = map(_widened, (q, k, v, y, g))
    return Saved(q, k, v, lse, (g * y).sum(axes=(-1,), keepdims=True), g)


def _widened(x: Value) -> Value:
    return x.cast(dtype=FLOAT32)


def _halved(x: Value) -> Value:
    return x.cast(dtype=FLOAT16)
