"""Attention."""

from __future__ import annotations

import torch

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.torch.call import Call, Said
from gradserve_client.torch.families.refused import RANDOM
from gradserve_client.torch.families.table import RULES


@RULES("scaled_dot_product_attention")
def attention(call: Call) -> Said:
    """As the op of that name. A query that is left no key has 0."""
    if call["dropout_p"]:
        raise Blocked(f"in training it is random; {RANDOM[0]}", "call module.eval(), or set its dropout to 0")
    q, k, v = (call.node(name) for name in ("query", "key", "value"))
    groups = 1
    if call["enable_gqa"]:
        groups = call.shape("query")[-3] // call.shape("key")[-3]
    if groups > 1:
        *lead, heads, queries, width = call.shape("query")
        q = q.reshape(shape=[*lead, heads // groups, groups, queries, width])
        k, v = k.unsqueeze(axes=[-3]), v.unsqueeze(axes=[-3])
    y = _attended(call, q, k, v, groups)
    return y.reshape(shape=list(call.result.shape)) if groups > 1 else y


def _attended(call: Call, q: Node, k: Node, v: Node, groups: int) -> Node:
    scale = None if call["scale"] is None else float(call["scale"])
    if not call.has("attn_mask"):
        return q.attention(k, v, scale=scale, causal=True if call["is_causal"] else None)
    given = call.value("attn_mask")
    mask = given.given_by(call.graph)
    if groups > 1 and len(given.type.shape) > 2:
        *lead, heads, queries, keys = given.type.shape
        mask = mask.reshape(shape=[*lead, *([heads // groups, groups] if heads > 1 else [1, 1]), queries, keys])
    if given.constant is not None and _leaves_keys(given.constant):
        return q.attention(k, v, mask, scale=scale)
    # where all keys are hidden, none is, and the result is 0: so that no gradient is NaN
    is_bool = given.type.dtype == "bool"
    kept = mask if is_bool else mask.greater(call.constant(-torch.inf, given.type.dtype))
    some = kept.any(axes=[-1], keepdims=True)
    shown = some.logical_not().logical_or(mask) if is_bool else some.where(mask, call.constant(0, given.type.dtype))
    return some.where(q.attention(k, v, shown, scale=scale), call.constant(0, call.result.dtype))


def _leaves_keys(mask: torch.Tensor) -> bool:
    """Whether each query has a key."""
    kept = mask if mask.dtype == torch.bool else mask > -torch.inf
    return bool(kept.any(dim=-1).all())
