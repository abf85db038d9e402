"""Recipes by cuDNN of convolutions and attention, and the terms within which all recipes are made."""

from __future__ import annotations

from typing import NamedTuple

from engine.cards.candidates import NO_CHOICES, Choices
from engine.cards.convolutions import CudnnConvolutions
from engine.cards.cudnn_attention import CudnnAttention
from engine.cards.cudnn_library import CudnnLibrary
from engine.cards.cudnn_plans import CudnnPlans
from engine.graph.precision import IEEE, Precision
from engine.native.kernel_store import KernelStore


class CudnnRecipes:
    """Recipes by one card's cuDNN. Its plans are kept in `store`."""

    def __init__(self, library: CudnnLibrary, store: KernelStore | None = None) -> None:
        plans = CudnnPlans(library, store)
        self.library, self.convolutions, self.attention = library, CudnnConvolutions(plans), CudnnAttention(plans)


class CardTerms(NamedTuple):
    """Terms of a recipe: how float32 operands may be read, and the bytes that it may work in.

    In `deterministic` ones, nothing is added in an order of chance. `may_wait` is whether a plan that takes seconds to
    build is built, where there is none yet. Of a library's algorithms, those are used that are among the `choices`.
    """

    precision: Precision = IEEE
    workspace: int = 0
    deterministic: bool = True
    cudnn: CudnnRecipes | None = None
    may_wait: bool = True
    choices: Choices = NO_CHOICES
