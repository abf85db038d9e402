"""Attention, as the op of that name; what that lacks is left to ONNX's definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.onnx.call import ByDefinition, Call, Result, Said
from gradserve_client.onnx.families.table import RULES
from gradserve_client.tensors import Array

#: the opset since which causal masks begin where the past ends
_BEHIND_THE_PAST = 25


@RULES("Attention", since=23)
def attention(call: Call) -> Said:
    """softmax(q kᵀ · scale + mask) v, in groups of heads, behind keys and values of the past.

    A query that is left no key has 0. ONNX's definition, by which the rest goes, has the scale in float32.
    """
    _require_plain(call)
    q, k, v = (_heads(call, i) for i in range(3))
    width = call.results[0].shape[-1]
    present: list[Result] = [None, None]
    if call.has(4):
        k, v = call.graph.cat(call.node(4), k, axis=2), call.graph.cat(call.node(5), v, axis=2)
        present = [k, v]
    y = _attended(call, q, k, v)
    if call.rank() == 3:
        batch, queries = call.shape()[:2]
        y = y.transpose(axes=[0, 2, 1, 3]).reshape(shape=[batch, queries, width])
    return [y, *present]


def _require_plain(call: Call) -> None:
    """Raise ByDefinition for what the op lacks, and for float16, in which the definition rounds at each step."""
    attrs = call.attrs
    more = attrs.get("softcap") or call.has(6) or call.asked(3) or call.dtype() == np.float16
    past = call.has(4) and call.version < _BEHIND_THE_PAST
    shorter = call.has(3) and call.shape(3)[-1] != _extents(call)[1]
    precise = attrs.get("softmax_precision") not in {None, 1 if call.dtype() == np.float32 else 11}
    if more or past or shorter or precise:
        raise ByDefinition


def _extents(call: Call) -> tuple[int, int]:
    """How many queries and keys there are, those of the past among them."""
    along = 2 if call.rank() == 4 else 1
    past = call.shape(4)[2] if call.has(4) else 0
    return call.shape(0)[along], call.shape(1)[along] + past


def _counts(call: Call) -> tuple[int, int]:
    """How many heads queries have, and keys and values."""
    if call.rank() == 4:
        return call.shape(0)[1], call.shape(1)[1]
    return call.attrs["q_num_heads"], call.attrs["kv_num_heads"]


def _heads(call: Call, i: int) -> Node:
    """Operand i as [batch, heads, entries, width]."""
    if call.rank(i) == 4:
        return call.node(i)
    batch, entries, width = call.shape(i)
    heads = _counts(call)[0 if i == 0 else 1]
    return call.node(i).reshape(shape=[batch, entries, heads, width // heads]).transpose(axes=[0, 2, 1, 3])


def _attended(call: Call, q: Node, k: Node, v: Node) -> Node:
    """[batch, heads, queries, width]. Where all keys are hidden, none is, and the result is 0: no gradient is NaN."""
    heads, shared = _counts(call)
    mask = _mask(call)
    stated: dict[str, Any] = {"scale": call.attrs.get("scale"), "grouped": True if heads != shared else None}
    if mask is None:
        return q.attention(k, v, **stated)
    hidden = call.constant(-np.inf, call.dtype())
    some = mask.greater(hidden).any(axes=[-1], keepdims=True)
    zero = call.like(0)
    return some.where(q.attention(k, v, some.where(mask, zero), **stated), zero)


def _mask(call: Call) -> Node | None:
    """What is added to the scores, −∞ where a key is hidden."""
    known = _visible(call)
    if not call.has(3):
        return None if known.all() else call.like(np.where(known, 0, -np.inf))
    mask, hidden = call.node(3), call.like(-np.inf)
    if call.dtype(3) == np.bool_:
        mask = mask.where(call.like(0), hidden)
    return mask if known.all() else call.constant(known).where(mask, hidden)


def _visible(call: Call) -> Array:
    """[queries, keys]: which a query may look at by its place, all of its past among them."""
    queries, keys = _extents(call)
    offset = call.shape(4)[2] if call.has(4) else 0
    i, j = np.arange(queries)[:, None] + offset, np.arange(keys)[None]
    left, right = call.attrs.get("left_window_size", -1), call.attrs.get("right_window_size", -1)
    seen = np.ones((queries, keys), np.bool_)
    if call.attrs["is_causal"]:
        seen &= j <= i
    if left >= 0:
        seen &= j >= i - left
    if right >= 0:
        seen &= j <= i + right
    return seen
