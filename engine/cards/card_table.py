"""The table of card recipes: by op, what a card launches for a node, where that is not what its array module does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from engine.cards.card_recipe import CardRecipe, CardTerms
from engine.cards.product_recipes import product_card_recipe
from engine.graph.op import Kernel
from engine.ops.matmul import MatMul

#: of the terms, an op, its result's type, its operands' and its attributes: the recipe; None where there is none
CardRecipeOf = Callable[..., CardRecipe | None]

#: class of ops → what makes their recipes
CARD_RECIPES: Final[Mapping[type[Kernel], CardRecipeOf]] = MappingProxyType({MatMul: product_card_recipe})


def has_card_recipes(op: Kernel) -> bool:
    """Whether a card has recipes for ops of this class."""
    return any(base in CARD_RECIPES for base in type(op).__mro__)


def card_recipe_for(op: Kernel, terms: CardTerms, out: Any, *types: Any, **attrs: Any) -> CardRecipe | None:
    """What a card launches for a result of operands of these types, which lie as their strides say.

    None where there is nothing better than the op itself, or that would work in more than it may.
    """
    made_by = next((CARD_RECIPES[base] for base in type(op).__mro__ if base in CARD_RECIPES), None)
    found = made_by and made_by(terms, op, out, *types, **attrs)
    return found if found is not None and found.workspace <= terms.workspace else None
