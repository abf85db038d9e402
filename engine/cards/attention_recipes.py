"""Recipes of attention in half: by cuDNN alone."""

from __future__ import annotations

from typing import Any

from engine.cards.card_recipe import CardRecipe
from engine.cards.card_terms import CardTerms
from engine.cards.cudnn_attention import attention_shape
from engine.graph.tensor_type import TensorType


def rows_card_recipe(terms: CardTerms, _: Any, *types: TensorType, **attrs: Any) -> CardRecipe | None:
    """Of q, k and v."""
    of = attention_shape(*types[:3], **attrs)
    if of is None or terms.cudnn is None:
        return None
    return terms.cudnn.attention.rows(
        of, deterministic=terms.deterministic, workspace=terms.workspace, may_plan=terms.may_wait
    )


def gradients_card_recipe(terms: CardTerms, _: Any, *types: TensorType, **attrs: Any) -> CardRecipe | None:
    """Of q, k, v, and what lies densely: y, the logarithms and the cotangent."""
    of = attention_shape(*types[:3], **attrs)
    if of is None or terms.cudnn is None or not all(type.is_dense for type in types[3:]):
        return None
    return terms.cudnn.attention.gradients(
        of, deterministic=terms.deterministic, workspace=terms.workspace, may_plan=terms.may_wait
    )
