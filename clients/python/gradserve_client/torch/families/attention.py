"""Attention."""

from __future__ import annotations

from typing import Any

import torch

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
    stated: dict[str, Any] = {"scale": None if call["scale"] is None else float(call["scale"])}
    if call["enable_gqa"] and call.shape("query")[-3] != call.shape("key")[-3]:
        stated["grouped"] = True
    if not call.has("attn_mask"):
        return q.attention(k, v, causal=True if call["is_causal"] else None, **stated)
    given = call.value("attn_mask")
    mask = given.given_by(call.graph)
    if given.constant is not None and _leaves_keys(given.constant):
        return q.attention(k, v, mask, **stated)
    # where all keys are hidden, none is, and the result is 0: so that no gradient is NaN
    is_bool = given.type.dtype == "bool"
    kept = mask if is_bool else mask.greater(call.constant(-torch.inf, given.type.dtype))
    some = kept.any(axes=[-1], keepdims=True)
    shown = some.logical_not().logical_or(mask) if is_bool else some.where(mask, call.constant(0, given.type.dtype))
    return some.where(q.attention(k, v, shown, **stated), call.constant(0, call.result.dtype))


def _leaves_keys(mask: torch.Tensor) -> bool:
    """Whether each query has a key."""
    kept = mask if mask.dtype == torch.bool else mask > -torch.inf
    return bool(kept.any(dim=-1).all())
