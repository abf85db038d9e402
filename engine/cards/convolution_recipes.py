"""Recipes of convolutions: by cuDNN, where it has a plan, else by columns and products."""

from __future__ import annotations

from engine.cards.card_recipe import CardRecipe, ProductPhase
from engine.cards.card_terms import CardTerms
from engine.cards.column_convolutions import column_recipe
from engine.cards.convolutions import convolution_precision
from engine.graph.precision import IEEE
from engine.microkernels.convolution import DirectedConvolution


def convolution_card_recipe(terms: CardTerms, directed: DirectedConvolution) -> CardRecipe | None:
    """Either reads float32 operands in the same precision: float32 or tf32, whichever is no less exact than asked."""
    of, direction = directed
    precision = convolution_precision(terms.precision) if of.dtype == "float32" else IEEE
    by_cudnn = terms.cudnn and terms.cudnn.convolutions.recipe(
        of,
        direction,
        precision=precision,
        deterministic=terms.deterministic,
        workspace=terms.workspace,
        choices=terms.choices,
    )
    found = by_cudnn or column_recipe(of, direction, terms.workspace)
    if found is None:
        return None
    phases = (
        phase._replace(precision=precision) if isinstance(phase, ProductPhase) else phase for phase in found.phases
    )
    return found._replace(phases=tuple(phases), precision=precision)
