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
    """How scores are made of products of queries and keys. The scale goes to the queries, which are fewer."""

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
    """What the way back reads: operands, the logarithm of each row's sum of exponentials, δ, and the cotangent g of y.

    δ = Σ g·y − the cotangent of those logarithms; both are [..., queries, 1].
    """

    q: Value
    k: Value
    v: Value
    lse: Value
    delta: Value
    g: Value


class WayBack:
    """With s the scores, p = exp(s − lse) and dp = g vᵀ: the cotangent of the scores is ds = p · (dp − δ)."""

    def __init__(self, saved: Saved, masking: Masking) -> None:
        self._saved, self._masking = saved, masking
        self._scaled = saved.q * masking.scale
        self._p = (masking.scores(saved.q, saved.k) - saved.lse).exp()
        self._centred = saved.g @ saved.v.transpose() - saved.delta
        self.ds = masking.hide(self._p * self._centred, 0.0)

    @property
    def by_operands(self) -> tuple[Value, Value, Value]:
        """dq = scale · ds k, dk = scale · dsᵀ q, dv = pᵀ g."""
        k, g, scale = self._saved.k, self._saved.g, self._masking.scale
        return self.ds @ k * scale, self.ds.transpose() @ self._scaled, self._p.transpose() @ g

    def again(self, cq: Value | None, ck: Value | None, cv: Value | None) -> list[Value | None]:
        """The cotangents of what is saved and of the mask, from those of `by_operands`."""
        saved, scale = self._saved, self._masking.scale
        t = [self.ds.full_like(0.0)] if cq is None and ck is None else []
        t += [] if cq is None else [cq * scale @ saved.k.transpose()]
        t += [] if ck is None else [self._scaled @ ck.transpose()]
        by_q, by_k, *others = self.from_scores(reduce(add, t), cv)
        by_q = by_q if ck is None else by_q + unbroadcast(self.ds @ ck * scale, saved.q)
        by_k = by_k if cq is None else by_k + unbroadcast(self.ds.transpose() @ cq * scale, saved.k)
        return [by_q, by_k, *others]

    def from_scores(self, t: Value, cv: Value | None = None) -> tuple[Value, Value, *tuple[Value | None, ...]]:
        """As `again`, from the cotangents `t` of ds and `cv` of dv.

        Those of dp and p are t · p and t · (dp − δ) + g cvᵀ, and that of s is the latter times p.
        """
        q, k, v, _, _, g = self._saved
        t = self._masking.hide(t, 0.0)
        by_dp, by_p = t * self._p, t * self._centred
        by_g = by_dp @ v
        if cv is not None:
            by_p, by_g = by_p + g @ cv.transpose(), by_g + self._p @ cv
        by_s = self._masking.hide(by_p * self._p, 0.0)
        by_q, by_k = by_s @ k * self._masking.scale, by_s.transpose() @ self._scaled
        found = (by_q, by_k, by_dp.transpose() @ g, -_row_sum(by_s), -_row_sum(by_dp), by_g)
        return (*map(unbroadcast, found, self._saved), self._masking.by_mask(by_s))


def _row_sum(x: Value) -> Value:
    return x.sum(axes=(-1,), keepdims=True)
