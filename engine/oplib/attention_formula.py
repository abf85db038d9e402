"""Attention in terms of other ops, with whole matrices of scores: what it means, and the way back, twice over."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import NamedTuple

from engine.graph.ir import Value
from engine.graph.tensor_type import BOOL
from engine.oplib.elementwise import unbroadcast


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
        return _not_later(scores).where(scores, fill) if self.causal else scores

    def by_mask(self, ds: Value) -> Value | None:
        """The cotangent of the mask, of that of the scores."""
        return None if self.mask is None or self.mask.dtype == BOOL else unbroadcast(ds, self.mask)


def _not_later(scores: Value) -> Value:
    """[queries, keys]: whether the key's position is at most the query's."""
    queries, keys = (scores.builder.arange(n) for n in scores.shape[-2:])
    return queries.reshape(shape=(*queries.shape, 1)) >= keys


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
        """What arrives at ds from dq, from dk and directly."""
        arriving = [] if cs is None else [cs.broadcast_to(shape=self.ds.shape)]
        if cq is not None:
            arriving.append(cq * self._scale @ self._saved.k.transpose())
        if ck is not None:
            arriving.append(self._scaled @ ck.transpose())
        return reduce(add, arriving or [self.ds.full_like(0.0)])


def _row_sum(x: Value) -> Value:
    return x.sum(axes=(-1,), keepdims=True)
