"""Scaled dot-product attention."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from engine.graph.attributes import Attr
from engine.graph.dtypes import DTYPES, FLOATS
from engine.graph.errors import ShapeMismatch
from engine.graph.ir import Value
from engine.graph.op import ResultTypes, wrong_dtype
from engine.graph.sample import Real, Sample
from engine.graph.tensor_type import FLOAT32, DType, Shape, TensorType, broadcast, promote, show_shape
from engine.oplib.attention_formula import Masking
from engine.oplib.attention_half import HALF_ROWS, is_half_attention
from engine.oplib.attention_rows import ROWS
from engine.oplib.formula import Formula
from engine.oplib.operands import require_extent, wrong_shape

#: bytes of scores from which only those of a block of queries are in memory; to hold all is quicker, by a tenth or more
SCORES_HELD: Final = 16 << 20
#: and of how many elements for each of q, k and v, which are held in any case
OUTWEIGHED: Final = 1


class Attention(Formula):
    """y = softmax(q kᵀ · scale + mask) v, for each query the mean of the values weighted by how its key fits.

    q [..., queries, d], k [..., keys, d], v [..., keys, width], y [..., queries, width]; leading axes broadcast. The
    mask broadcasts to [..., queries, keys]: bool (true = keep) or float (added). `causal` also hides key j from query i
    where j > i. A query that is left no key has NaN. Scores of 16 MiB and more that outweigh q, k and v are not held in
    memory, but for tangents and second derivatives. A. Vaswani et al., "Attention is all you need" (2017).
    """

    name = "attention"
    operands = ("q", "k", "v", "mask?")
    attrs: ClassVar[Mapping[str, Attr]] = {
        "scale": Attr("float", None, "what q kᵀ is multiplied by; absent: 1/√d"),
        "causal": Attr("bool", False, "hide key j from query i where j > i"),
    }
    dtypes = DTYPES
    gradient = (
        "with p = softmax(…), dp = g vᵀ, ds = p · (dp − Σ dp·p): dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ g"
    )
    samples = (
        Sample(Real(2, 3, 2), Real(2, 4, 2), Real(2, 4, 3)),
        Sample(Real(3, 2), Real(2, 3, 2), Real(1, 3, 1), Real(3, 3), causal=True),
        Sample(Real(2, 2), Real(3, 2), Real(3, 2), Real(2, 1, 3), scale=0.5),
        Sample(Real(3, 2), Real(2, 2), Real(2, 2), causal=True),
    )

    def canonical(self, attrs: dict[str, Any], *types: TensorType) -> dict[str, Any]:
        """The scale filled in."""
        d = types[0].shape[-1] if types[0].ndim else 0
        return {**attrs, "scale": 1 / math.sqrt(max(d, 1)) if attrs["scale"] is None else attrs["scale"]}

    def infer(
        self, q: TensorType, k: TensorType, v: TensorType, mask: TensorType | None = None, **attrs: Any
    ) -> ResultTypes:
        """[..., queries, width]. Raises ShapeMismatch, DtypeMismatch."""
        for i, (name, type) in enumerate((("q", q), ("k", k), ("v", v))):
            check_matrices(type, i, name)
        require_extent(k, -1, q.shape[-1], 1, "k", "that of q")
        require_extent(v, -2, k.shape[-2], 2, "v", "the keys of k")
        if mask is not None:
            check_mask(mask, (q.shape[-2], k.shape[-2]))
        floats = [x.dtype for x in (q, k, v, mask) if x is not None and x.is_float]
        lead = leading(*(x for x in (q, k, v, mask) if x is not None))
        return TensorType((*lead, q.shape[-2], v.shape[-1]), promote(*floats))

    def decompose(self, *operands: Value, **attrs: Any) -> Value:
        """Of halves, where scores are large and libraries of cards compute that, by an op of its own; else widened."""
        types = [x.type for x in operands]
        if is_half_attention(*types) and is_large(_scores(FLOAT32, *types), *types):
            return operands[0].builder.emit(HALF_ROWS, operands, attrs).output(0)
        return super().decompose(*operands, **attrs)

    def formula(self, q: Value, k: Value, v: Value, mask: Value | None = None, *, scale: float, causal: bool) -> Value:
        """By whole matrices of scores, or, where these are large, a block of queries at a time."""
        operands = [x for x in (q, k, v, mask) if x is not None]
        dtype = promote(*(x.dtype for x in operands if x.type.is_float))
        if not is_large(_scores(dtype, *(x.type for x in operands)), q.type, k.type, v.type):
            return Masking(mask, scale, causal).scores(q, k).softmax() @ v
        operands[:3] = (x if x.dtype == dtype else x.cast(dtype=dtype) for x in (q, k, v))
        return q.builder.emit(ROWS, operands, {"scale": scale, "causal": causal}).output(0)


def _scores(dtype: DType, *types: TensorType) -> TensorType:
    """Of q, k, v and perhaps a mask."""
    return TensorType((*leading(*types), types[0].shape[-2], types[1].shape[-2]), dtype)


def is_large(scores: TensorType, *operands: TensorType) -> bool:
    """Whether scores take so much memory that it is better not to hold them, and more than the operands."""
    return scores.nbytes >= SCORES_HELD and scores.size > OUTWEIGHED * sum(x.size for x in operands)


def check_matrices(type: TensorType, i: int, name: str) -> None:
    """Raise DtypeMismatch or ShapeMismatch unless operand `i` is float and has two axes at least."""
    if not type.is_float:
        raise wrong_dtype(name, i, FLOATS, type)
    if type.ndim < 2:
        raise wrong_shape(i, name, "at least 2 axes", type)


def check_mask(mask: TensorType, scores: Shape) -> None:
    """Raise DtypeMismatch or ShapeMismatch unless the mask can be laid over the scores [queries, keys]."""
    if mask.dtype.kind not in "bf":
        raise wrong_dtype("mask", 3, ("bool", *FLOATS), mask)
    last = mask.shape[-2:]
    if any(e not in (1, s) for e, s in zip(reversed(last), reversed(scores), strict=False)):
        raise wrong_shape(3, "mask", f"a shape that broadcasts to [..., {scores[0]}, {scores[1]}]", mask)


def leading(*types: TensorType) -> Shape:
    """The broadcast of all axes but the last two. Raises ShapeMismatch."""
    try:
        return broadcast(*(t.shape[:-2] for t in types))
    except ShapeMismatch:
        got = ", ".join(show_shape(t.shape) for t in types)
        raise ShapeMismatch(
            f"the leading axes of the operands do not broadcast: their shapes are {got}",
            expected="leading axes that broadcast",
            got=got,
        ) from None
