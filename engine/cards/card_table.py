"""The table of card recipes: by geometry or op, what a card launches for a node in place of its array module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from engine.cards.attention_products import attention_gradients_recipe, attention_rows_recipe
from engine.cards.attention_recipes import gradients_card_recipe, rows_card_recipe
from engine.cards.card_recipe import CardRecipe
from engine.cards.card_terms import CardTerms
from engine.cards.convolution_recipes import convolution_card_recipe
from engine.cards.index_reads import gather_card_recipe
from engine.cards.index_sums import scatter_card_recipe, segments_card_recipe
from engine.cards.pools import pool_card_recipe
from engine.cards.product_recipes import laid_products_card_recipe, product_card_recipe
from engine.cards.sums import mean_card_recipe, sum_card_recipe
from engine.graph.op import Kernel
from engine.microkernels.convolution import DirectedConvolution
from engine.microkernels.product import Product
from engine.microkernels.windows import DirectedPool
from engine.oplib.attention_gradients import AttentionGradients
from engine.oplib.attention_half import HalfGradients, HalfRows
from engine.oplib.attention_rows import AttentionRows
from engine.oplib.laid_products import LaidProducts
from engine.oplib.laid_results import LaidResults
from engine.ops.gather import Gather, ScatterAdd
from engine.ops.segment_sum import SegmentSum
from engine.ops.sum import Mean, Sum
from engine.recipes.by_class import of_class
from engine.recipes.geometry import GEOMETRIES, geometry_of

#: kind of geometry → of the terms and a geometry: the recipe; None where there is none
GEOMETRY_CARD_RECIPES: Final[Mapping[type, Callable[[CardTerms, Any], CardRecipe | None]]] = MappingProxyType(
    {
        DirectedConvolution: convolution_card_recipe,
        DirectedPool: pool_card_recipe,
        Product: product_card_recipe,
    }
)
#: class of ops → of the terms, the result's type, the operands' and attributes: the recipe; None where there is none
CARD_RECIPES: Final[Mapping[type[Kernel], Callable[..., CardRecipe | None]]] = MappingProxyType(
    {
        AttentionGradients: attention_gradients_recipe,
        AttentionRows: attention_rows_recipe,
        Gather: gather_card_recipe,
        HalfGradients: gradients_card_recipe,
        HalfRows: rows_card_recipe,
        Mean: mean_card_recipe,
        ScatterAdd: scatter_card_recipe,
        SegmentSum: segments_card_recipe,
        Sum: sum_card_recipe,
    }
)


def has_card_recipes(op: Kernel) -> bool:
    """Whether a card has recipes for ops of this class."""
    is_listed = of_class(GEOMETRIES, op) is not None or of_class(CARD_RECIPES, op) is not None
    return is_listed or isinstance(op, LaidProducts | LaidResults)


def card_recipe_for(op: Kernel, terms: CardTerms, out: Any, *types: Any, **attrs: Any) -> CardRecipe | None:
    """What a card launches for a result of operands of these types, which lie as their strides say.

    None where there is nothing better than the op itself, or that would work in more than it may.
    """
    if isinstance(op, LaidResults):
        return card_recipe_for(op.op, terms, op.lying(out), *types, **attrs)
    geometry = geometry_of(op, out, *types, **attrs)
    if geometry is not None:
        found = GEOMETRY_CARD_RECIPES[type(geometry)](terms, geometry)
    elif isinstance(op, LaidProducts):
        found = laid_products_card_recipe(terms, op.parts, out, *types)
    else:
        made_by = of_class(CARD_RECIPES, op)
        found = made_by and made_by(terms, out, *types, **attrs)
    return found if found is not None and found.workspace <= terms.workspace else None
