"""Scaled dot-product attention."""

from __future__ import annotations

from typing import Any

import torch

from gradserve_client.importing import Blocked
from gradserve_client.torch.call import Call, Results
from gradserve_client.torch.families.table import RULES
from gradserve_client.torch.families.unsupported import RANDOM


@RULES("scaled_dot_product_attention")
def attention(call: Call) -> Results:
    """Write `attention`. The result of a query with all keys masked is 0."""
    if call["dropout_p"]:
        raise Blocked(f"in training it is random; {RANDOM[0]}", "call module.eval(), or set its dropout to 0")
    q, k, v = (call.node(name) for name in ("query", "key", "value"))
    attributes: dict[str, Any] = {"scale": None if call["scale"] is None else float(call["scale"])}
    if call["enable_gqa"] and call.shape("query")[-3] != call.shape("key")[-3]:
        attributes["grouped"] = True
    if not call.has("attn_mask"):
        return q.attention(k, v, causal=True if call["is_causal"] else None, **attributes)
    mask_value = call.value("attn_mask")
    mask = mask_value.node_in(call.graph)
    if mask_value.constant is not None and _has_keys(mask_value.constant):
        return q.attention(k, v, mask, **attributes)
    # a row without keys would give NaN, also in its gradient: unmask the row, and set its result to 0
    is_bool = mask_value.type.dtype == "bool"
    visible = mask if is_bool else mask.greater(call.constant(-torch.inf, mask_value.type.dtype))
    has_key = visible.any(axes=[-1], keepdims=True)
    safe = (
        has_key.logical_not().logical_or(mask)
        if is_bool
        else has_key.where(mask, call.constant(0, mask_value.type.dtype))
    )
    return has_key.where(q.attention(k, v, safe, **attributes), call.constant(0, call.result.dtype))


def _has_keys(mask: torch.Tensor) -> bool:
    """Return whether each query has a key that is not masked."""
    visible = mask if mask.dtype == torch.bool else mask > -torch.inf
    return bool(visible.any(dim=-1).all())
