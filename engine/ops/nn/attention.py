"""Scaled dot-product attention.

`Attention` is a formula: products and a softmax. If the matrix of scores would be large, the formula is one op instead,
which computes scores in tiles (`attention_tiles`); for float16, it is an op that GPU libraries implement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from engine.ir.attributes import Attr
from engine.ir.errors import ShapeMismatch
from engine.ir.graph import Value
from engine.ir.op import Array, ResultTypes, wrong_dtype
from engine.ir.run_context import RunContext
from engine.ir.sample import Real, Sample, Truth
from engine.ir.tensor_type import (
    FLOAT16,
    FLOAT32,
    FLOATS,
    REALS,
    DType,
    Shape,
    TensorType,
    broadcast,
    promote,
    show_shape,
)
from engine.ops.common.numerics import require_extent, wrong_shape
from engine.ops.elementwise.base import Formula, unbroadcast
from engine.ops.nn.attention_tiles import GRADIENTS, ROWS, AttentionBackward, Masking, SavedValues, ScoreOp, batch_axes

# Attention in float16, computed in float32. Its ops exchange float16 tensors and float32 logarithms, as GPU libraries
# do.

#: divisor and maximum of the row length of q, k and v that GPU libraries support
WIDTHS: Final = 8
MOST_WIDTH: Final = 128
#: bytes of scores from which only a block of queries is in memory at a time; below it, keeping all is faster by 10 % or
#: more
HELD_SCORE_BYTES: Final = 16 << 20
#: scores per element of q, k and v up to which all scores are kept in memory, whatever their size
HELD_SCORES_PER_ELEMENT: Final = 1


def is_half_attention(q: TensorType, k: TensorType, v: TensorType, *mask: TensorType) -> bool:
    """Whether the float16 ops apply: supported row lengths, equal leading axes, no mask, nothing empty."""
    types = (q, k, v)
    fits = all(x.dtype == FLOAT16 and x.shape[:-2] == q.shape[:-2] and x.size for x in types)
    return fits and not mask and all(x.shape[-1] % WIDTHS == 0 and x.shape[-1] <= MOST_WIDTH for x in types)


class HalfRows(ScoreOp):
    """y as in `attention`, in float16, and the logarithms of row sums of exponentials, [..., queries, 1] in float32."""

    name = "attention_half_rows"
    operands = ("q", "k", "v")
    several = True
    products = 2

    def infer(self, q: TensorType, k: TensorType, v: TensorType, **attrs: Any) -> ResultTypes:
        """Return the types of y and the logarithms."""
        lead = (*batch_axes(q, k, v), q.shape[-2])
        return q.with_shape((*lead, v.shape[-1])), TensorType((*lead, 1), FLOAT32)

    def forward(self, run: RunContext, *arrays: Array, out: tuple[Array, Array], **attrs: Any) -> None:
        """Run `attention_rows` in float32."""
        y, lse = out
        single = run.xp.empty(y.shape, FLOAT32)
        ROWS.forward(run, *(x.astype(FLOAT32) for x in arrays), out=(single, lse), **attrs)
        y[...] = single

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """Use the op of the backward pass, unless the logarithms are differentiated."""
        y_cotangent = y.output(0).full_like(0.0) if g[0] is None else g[0]
        saved = (*operands, y.output(0), y.output(1), y_cotangent)
        if g[1] is None:
            gradients = y.builder.emit(HALF_GRADIENTS, saved, attrs)
        else:
            saved_values = _saved_values(*saved)
            gradients = y.builder.emit(GRADIENTS, saved_values._replace(delta=saved_values.delta - g[1])[:6], attrs)
        return [unbroadcast(_to_half(gradients.output(i)), x) for i, x in enumerate(operands)]

    def written_out(self, q: Value, k: Value, v: Value, *, scale: float, causal: bool) -> Sequence[Value]:
        """Write the formula with whole matrices of scores."""
        scores = Masking(None, scale, causal).scores(_to_single(q), _to_single(k))
        y, lse = scores.softmax() @ _to_single(v), scores.logsumexp(axes=(-1,), keepdims=True)
        return _to_half(y), lse.broadcast_to(shape=(*y.shape[:-1], 1))

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Count the bytes of float32 copies of everything, and of `attention_rows`."""
        wide, y = [x.with_dtype(FLOAT32) for x in types], out[0].with_dtype(FLOAT32)
        copied: int = sum(x.nbytes for x in (*wide, y))
        return copied + ROWS.workspace((y, out[1]), *wide, **attrs)


class HalfGradients(ScoreOp):
    """dq, dk and dv in float16, as in `AttentionGradients`, from y and its cotangent g instead of δ = Σ g·y."""

    name = "attention_half_gradients"
    operands = ("q", "k", "v", "y", "lse", "g")
    several = True
    products = 5

    def infer(self, q: TensorType, k: TensorType, v: TensorType, *others: TensorType, **attrs: Any) -> ResultTypes:
        """Return the types of q, k and v with all leading axes."""
        lead = batch_axes(q, k, v, *others)
        return tuple(x.with_shape((*lead, *x.shape[-2:])) for x in (q, k, v))

    def forward(self, run: RunContext, *arrays: Array, out: tuple[Array, ...], **attrs: Any) -> None:
        """Run `attention_gradients` in float32."""
        xp = run.xp
        q, k, v, y, lse, g = (x.astype(FLOAT32) for x in arrays)
        delta = xp.sum(xp.multiply(y, g, out=y), axis=-1, keepdims=True)
        singles = tuple(xp.empty(x.shape, FLOAT32) for x in out)
        GRADIENTS.forward(run, q, k, v, lse, delta, g, out=singles, **attrs)
        for half, single in zip(out, singles, strict=True):
            half[...] = single

    def vjp(self, g: Sequence[Value | None], y: Value, *operands: Value, **attrs: Any) -> Sequence[Value | None]:
        """Differentiate with whole matrices of scores, and through δ = Σ g·y."""
        saved, result_cotangents = _saved_values(*operands), [None if x is None else _to_single(x) for x in g]
        *others, lse_cotangent, delta_cotangent, direct_g_cotangent = AttentionBackward(saved, **attrs).second_order(
            *result_cotangents
        )
        assert delta_cotangent is not None
        assert direct_g_cotangent is not None
        y_cotangent, g_cotangent = (
            delta_cotangent * saved.g,
            direct_g_cotangent + delta_cotangent * _to_single(operands[3]),
        )
        cotangents = (*others, y_cotangent, lse_cotangent, g_cotangent)
        return [
            None if x is None else x.cast(dtype=operand.dtype) for x, operand in zip(cotangents, operands, strict=True)
        ]

    def written_out(self, *operands: Value, **attrs: Any) -> Sequence[Value]:
        """Write the same with whole matrices of scores."""
        return [_to_half(x) for x in AttentionBackward(_saved_values(*operands), **attrs).operand_gradients]

    def workspace(self, out: Any, *types: TensorType, **attrs: Any) -> int:
        """Count the bytes of float32 copies of everything, and of `attention_gradients`."""
        q, k, v, y, lse, g = (x.with_dtype(FLOAT32) for x in types)
        wide = tuple(x.with_dtype(FLOAT32) for x in out)
        copied: int = sum(x.nbytes for x in (q, k, v, y, lse, lse, g, *wide))
        return copied + GRADIENTS.workspace(wide, q, k, v, lse, lse, g, **attrs)


HALF_ROWS, HALF_GRADIENTS = HalfRows(), HalfGradients()


def _saved_values(q: Value, k: Value, v: Value, y: Value, lse: Value, g: Value) -> SavedValues:
    """Append the values that the backward pass reads, in float32."""
    q, k, v, y, g = map(_to_single, (q, k, v, y, g))
    return SavedValues(q, k, v, lse, (g * y).sum(axes=(-1,), keepdims=True), g)


def _to_single(x: Value) -> Value:
    return x.cast(dtype=FLOAT32)


def _to_half(x: Value) -> Value:
    return x.cast(dtype=FLOAT16)


class Attention(Formula):
    """y = softmax(q kᵀ · scale + mask) v: for each query, the mean of the values, weighted by how well its key matches.

    q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast. The
    mask broadcasts to [..., queries, keys]; it is bool (true = keep) or float (added). `causal` also hides key j from
    query i if j > i. A query with no visible keys gives NaN. With `grouped`, the number of heads of q (axis -3) is a
    multiple of that of k and v, and adjacent heads of q share a head of k and v: PyTorch's enable_gqa, and what JAX's
    dot_product_attention does if k and v have fewer heads. Scores of at least 16 MiB that are larger than q, k and v
    together are not stored, except for tangents and second derivatives.

    A. Vaswani et al., "Attention is all you need" (2017); J. Ainslie et al., "GQA" (2023).
    """

    name = "attention"
    section = "attention"
    operands = ("q", "k", "v", "mask?")
    attrs: ClassVar[Mapping[str, Attr]] = {
        "scale": Attr("float", None, "factor of q kᵀ; default: 1/√d"),
        "causal": Attr("bool", False, "whether to hide key j from query i if j > i"),
        "grouped": Attr("bool", False, "whether each head of k and v serves several heads of q; axis -3", since=2),
    }
    dtypes = REALS
    gradient = (
        "with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ g"
    )
    samples = (
        Sample(Real(2, 3, 2), Real(2, 4, 2), Real(2, 4, 3)),
        Sample(Real(3, 2), Real(2, 3, 2), Real(1, 3, 1), Real(3, 3), causal=True),
        Sample(Real(2, 2), Real(3, 2), Real(3, 2), Real(2, 1, 3), scale=0.5),
        Sample(Real(3, 2), Real(2, 2), Real(2, 2), causal=True),
        Sample(
            Real(4, 2, 3),
            Real(2, 3, 3, low=-0.1, high=0.1),
            Real(2, 3, 1),
            Real(1, 2, 3, low=-0.1, high=0.1),
            grouped=True,
        ),
    )
    truths = (
        Truth(
            operands=[[[[0.0]], [[0.0]]], [[[1.0], [2.0]]], [[[3.0], [5.0]]]],
            attrs={"grouped": True},
            value=[[[4.0]], [[4.0]]],
            gradients=[[[[0.5]], [[0.5]]], [[[0.0], [0.0]]], [[[1.0], [1.0]]]],
            source="by hand: weights of one half each",
        ),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """Fill in the scale."""
        d = types[0].shape[-1] if types[0].ndim else 0
        return {**attrs, "scale": 1 / math.sqrt(max(d, 1)) if attrs["scale"] is None else attrs["scale"]}

    def infer(
        self, q: TensorType, k: TensorType, v: TensorType, mask: TensorType | None = None, **attrs: Any
    ) -> ResultTypes:
        """Return the type [..., queries, width]. Raises ShapeMismatch, DtypeMismatch."""
        types = [x for x in (q, k, v, mask) if x is not None]
        if attrs["grouped"]:
            check_heads(types)
            grouped_type = self.infer(
                *(x.with_shape(_grouped_shape(x.shape, i, types)) for i, x in enumerate(types)), grouped=False
            )
            assert isinstance(grouped_type, TensorType)
            *lead, heads, count, rows, width = grouped_type.shape
            return grouped_type.with_shape((*lead, heads * count, rows, width))
        for i, (name, type) in enumerate((("q", q), ("k", k), ("v", v))):
            check_matrices(type, i, name)
        require_extent(k, -1, q.shape[-1], 1, "k", "that of q")
        require_extent(v, -2, k.shape[-2], 2, "v", "the keys of k")
        if mask is not None:
            check_mask(mask, (q.shape[-2], k.shape[-2]))
        floats = [x.dtype for x in types if x.is_float]
        return TensorType((*leading(*types), q.shape[-2], v.shape[-1]), promote(*floats))

    def compose(self, *operands: Value, grouped: bool = False, **attrs: Any) -> Value:
        """Broadcast the heads of k and v if grouped; otherwise choose the op for the sizes."""
        types = [x.type for x in operands]
        if grouped:
            grouped_operands = [x.reshape(shape=_grouped_shape(x.shape, i, types)) for i, x in enumerate(operands)]
            y = grouped_operands[0].attention(*grouped_operands[1:], **attrs)
            *lead, heads, count, rows, width = y.shape
            return y.reshape(shape=(*lead, heads * count, rows, width))
        # Large float16 attention that GPU libraries support has an op of its own; other float16 operands are widened.
        if is_half_attention(*types) and is_large(_scores_type(FLOAT32, *types), *types):
            return operands[0].builder.emit(HALF_ROWS, operands, attrs).output(0)
        return super().compose(*operands, **attrs)

    def formula(self, q: Value, k: Value, v: Value, mask: Value | None = None, *, scale: float, causal: bool) -> Value:
        """Use whole matrices of scores, or a block of queries at a time if these are large."""
        operands = [x for x in (q, k, v, mask) if x is not None]
        dtype = promote(*(x.dtype for x in operands if x.type.is_float))
        if not is_large(_scores_type(dtype, *(x.type for x in operands)), q.type, k.type, v.type):
            return Masking(mask, scale, causal).scores(q, k).softmax() @ v
        operands[:3] = (x if x.dtype == dtype else x.cast(dtype=dtype) for x in (q, k, v))
        return q.builder.emit(ROWS, operands, {"scale": scale, "causal": causal}).output(0)


def check_heads(types: Sequence[TensorType]) -> None:
    """Raise DtypeMismatch, ShapeMismatch unless q has a multiple of the heads of k and v."""
    for i, (name, type) in enumerate(zip(("q", "k", "v"), types, strict=False)):
        check_matrices(type, i, name)
        if type.ndim < 3:
            raise wrong_shape(i, name, "at least 3 axes, with the heads on axis -3", type)
    q, k = types[0].shape[-3], types[1].shape[-3]
    if not k or q % k:
        raise wrong_shape(1, "k", f"a number of heads on axis -3 that divides the {q} heads of q", types[1])
    require_extent(types[2], -3, k, 2, "v", "the heads of k")
    if len(types) > 3 and types[3].ndim > 2 and types[3].shape[-3] not in (1, q):
        raise wrong_shape(3, "mask", f"1 head or {q} heads, as q has, on axis -3", types[3])


def _grouped_shape(shape: Shape, i: int, types: Sequence[TensorType]) -> Shape:
    """Return the shape of operand `i` with two axes for its heads: those of k, and those of q that share one."""
    heads, count = types[1].shape[-3], types[0].shape[-3] // types[1].shape[-3]
    if len(shape) < 3:
        return shape
    head_axes = (heads, count) if shape[-3] == heads * count and i in (0, 3) else (shape[-3], 1)
    return (*shape[:-3], *head_axes, *shape[-2:])


def _scores_type(dtype: DType, *types: TensorType) -> TensorType:
    """Return the type of the scores of q, k, v and perhaps a mask."""
    return TensorType((*leading(*types), types[0].shape[-2], types[1].shape[-2]), dtype)


def is_large(scores: TensorType, *operands: TensorType) -> bool:
    """Whether scores take much memory, and more than the operands, so that they are computed in tiles."""
    return scores.nbytes >= HELD_SCORE_BYTES and scores.size > HELD_SCORES_PER_ELEMENT * sum(x.size for x in operands)


def check_matrices(type: TensorType, i: int, name: str) -> None:
    """Raise DtypeMismatch or ShapeMismatch unless operand `i` is float and has at least two axes."""
    if not type.is_float:
        raise wrong_dtype(name, i, FLOATS, type)
    if type.ndim < 2:
        raise wrong_shape(i, name, "at least 2 axes", type)


def check_mask(mask: TensorType, scores: Shape) -> None:
    """Raise DtypeMismatch or ShapeMismatch unless the mask broadcasts to the scores [queries, keys]."""
    if mask.dtype.kind not in "bf":
        raise wrong_dtype("mask", 3, ("bool", *FLOATS), mask)
    last = mask.shape[-2:]
    if any(e not in (1, s) for e, s in zip(reversed(last), reversed(scores), strict=False)):
        raise wrong_shape(3, "mask", f"a shape that broadcasts to [..., {scores[0]}, {scores[1]}]", mask)


def leading(*types: TensorType) -> Shape:
    """Broadcast all axes but the last two. Raises ShapeMismatch."""
    try:
        return broadcast(*(t.shape[:-2] for t in types))
    except ShapeMismatch:
        shapes = ", ".join(show_shape(t.shape) for t in types)
        raise ShapeMismatch(
            f"the leading axes of the operands do not broadcast: their shapes are {shapes}",
            expected="leading axes that broadcast",
            got=shapes,
        ) from None
