"""Attention by the op `attention`, with ONNX's definition as a fallback."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.onnx.call import ByDefinition, Call, Result, RuleResult
from gradserve_client.onnx.families.table import RULES
from gradserve_client.tensors import Array

#: first opset whose causal mask is offset by the number of past keys
_OFFSET_SINCE = 25


@RULES("Attention", since=23)
def attention(call: Call) -> RuleResult:
    """Compute softmax(q kᵀ · scale + mask) v, in groups of heads, with past keys and values in front.

    A query without visible keys yields 0. Other variants use ONNX's definition, which has the scale in float32.
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
    """Raise ByDefinition for variants the op lacks, and for float16, where the definition rounds at each step."""
    attrs = call.attrs
    unsupported = attrs.get("softcap") or call.has(6) or call.is_requested(3) or call.dtype() == np.float16
    old_mask = call.has(4) and call.version < _OFFSET_SINCE
    short_mask = call.has(3) and call.shape(3)[-1] != _extents(call)[1]
    other_precision = attrs.get("softmax_precision") not in {None, 1 if call.dtype() == np.float32 else 11}
    if unsupported or old_mask or short_mask or other_precision:
        raise ByDefinition


def _extents(call: Call) -> tuple[int, int]:
    """Return the number of queries, and of keys, past ones included."""
    along = 2 if call.rank() == 4 else 1
    past = call.shape(4)[2] if call.has(4) else 0
    return call.shape(0)[along], call.shape(1)[along] + past


def _counts(call: Call) -> tuple[int, int]:
    """Return the number of heads of queries, and of keys and values."""
    if call.rank() == 4:
        return call.shape(0)[1], call.shape(1)[1]
    return call.attrs["q_num_heads"], call.attrs["kv_num_heads"]


def _heads(call: Call, i: int) -> Node:
    """Return operand i as [batch, heads, entries, width]."""
    if call.rank(i) == 4:
        return call.node(i)
    batch, entries, width = call.shape(i)
    heads = _counts(call)[0 if i == 0 else 1]
    return call.node(i).reshape(shape=[batch, entries, heads, width // heads]).transpose(axes=[0, 2, 1, 3])


def _attended(call: Call, q: Node, k: Node, v: Node) -> Node:
    """Compute attention, [batch, heads, queries, width].

    If all keys of a query are hidden, the mask of that query is dropped and its result replaced with 0, so that no
    gradient is NaN.
    """
    heads, shared = _counts(call)
    mask = _mask(call)
    options: dict[str, Any] = {"scale": call.attrs.get("scale"), "grouped": True if heads != shared else None}
    if mask is None:
        return q.attention(k, v, **options)
    hidden = call.constant(-np.inf, call.dtype())
    # softmax over −∞ alone is NaN, in the value and in the gradient
    has_keys = mask.greater(hidden).any(axes=[-1], keepdims=True)
    zero = call.like(0)
    return has_keys.where(q.attention(k, v, has_keys.where(mask, zero), **options), zero)


def _mask(call: Call) -> Node | None:
    """Return the term added to the scores, −∞ for a hidden key, or None if every key is visible."""
    visible = _visible(call)
    if not call.has(3):
        return None if visible.all() else call.like(np.where(visible, 0, -np.inf))
    mask, hidden = call.node(3), call.like(-np.inf)
    if call.dtype(3) == np.bool_:
        mask = mask.where(call.like(0), hidden)
    return mask if visible.all() else call.constant(visible).where(mask, hidden)


def _visible(call: Call) -> Array:
    """Return [queries, keys]: whether position lets a query attend to a key, the past included."""
    queries, keys = _extents(call)
    offset = call.shape(4)[2] if call.has(4) else 0
    i, j = np.arange(queries)[:, None] + offset, np.arange(keys)[None]
    left, right = call.attrs.get("left_window_size", -1), call.attrs.get("right_window_size", -1)
    visible = np.ones((queries, keys), np.bool_)
    if call.attrs["is_causal"]:
        visible &= j <= i
    if left >= 0:
        visible &= j >= i - left
    if right >= 0:
        visible &= j <= i + right
    return visible
