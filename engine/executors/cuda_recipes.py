"""From card recipes to calls: kernels of their texts, and products by cuBLASLt, in the one workspace of a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Final

import numpy as np

from engine.cards.candidates import NO_CHOICES, CandidateClock, Choices
from engine.cards.card_recipe import CardPlace, CardRecipe, ClearPhase, CudnnPhase, Phase, ProductPhase
from engine.cards.card_table import card_recipe_for, has_card_recipes
from engine.cards.card_terms import CardTerms, CudnnRecipes
from engine.cards.cublaslt import CublasLt
from engine.cards.cudnn_calls import cudnn_call
from engine.cards.cudnn_library import cudnn_library
from engine.cards.libraries import INSTEAD, card_library
from engine.cards.product_calls import BoundMatmul, ProductCalls, ProductPlaces, Uploaded
from engine.executors.cuda_kernels import CudaModule
from engine.graph.op import Array, KernelCall
from engine.graph.precision import Precision
from engine.graph.tensor_type import Strided, TensorType
from engine.loops.cuda_launch import Launch
from engine.native.kernel_errors import KernelUnavailable
from engine.native.kernel_store import KernelStore
from engine.native.reasons import Reasons
from engine.ops import registry
from engine.planning.compiled_bodies import plans_within
from engine.planning.plan import Plan, Step, graph_of
from engine.planning.storage import Storage

#: between what a recipe has of the workspace and what a library has, in bytes: as much as either makes use of
_APART: Final = 256


class CardCalls:
    """Maker of the calls of recipes on the current card. All of them work in `workspace`, one after the other."""

    def __init__(
        self,
        cupy: Any,
        workspace: Array,
        store: KernelStore | None = None,
        clock: CandidateClock | None = None,
        *,
        deterministic: bool = True,
    ) -> None:
        """`workspace` are bytes that live as long as this. Without cuBLASLt, nothing is multiplied by it.

        In a `deterministic` one nothing is added in an order of chance. Plans of cuDNN are kept in `store`. With a
        `clock`, so is which algorithms of libraries are the quickest.
        """
        self.workspace, self._deterministic = workspace, deterministic
        self._cupy, self._card = cupy, _card(cupy)
        self._store, self._clock = KernelStore() if store is None else store, clock
        #: of algorithms, for one plan: by itself, the first of each
        self.choices = NO_CHOICES
        cudnn = cudnn_library(self._card)
        self.cudnn = None if cudnn is None else CudnnRecipes(cudnn, self._store)
        self._reasons = Reasons("on this card, ops run by CuPy's functions: %s")
        self._products = self._opened()

    def terms(self, precision: Precision, *, may_wait: bool = False) -> CardTerms:
        """What recipes are made within here. What takes seconds is made where they `may_wait`, else it is not there."""
        return CardTerms(precision, self.workspace.nbytes, self._deterministic, self.cudnn, may_wait, self.choices)

    def choosing(self, stop: Callable[[], bool]) -> CardCalls:
        """The same for one plan, with choices that are open, unless `stop` comes true."""
        found = copy(self)
        found.choices = Choices(self._store, self._clock, stop)
        return found

    def choose_products(self, recipes: Iterable[CardRecipe]) -> None:
        """Have algorithms chosen for the products of recipes, while choices are open."""
        for recipe in recipes:
            for phase in recipe.phases:
                if isinstance(phase, ProductPhase) and self._products is not None:
                    self._products.choose(phase, self.workspace.nbytes - self._used(recipe), self.choices)

    def calls(
        self,
        recipe: CardRecipe,
        modules: Mapping[str, CudaModule],
        operands: Sequence[Array],
        results: Sequence[Array],
        flag: int,
    ) -> list[KernelCall] | None:
        """The calls that make `results`; `flag` is an address. None where they cannot be made here, which is told."""
        if recipe.text and recipe.text not in modules:
            return None  # not yet, or it was told when they were compiled
        bound = _Placed(self, recipe, modules.get(recipe.text), operands, results, flag)
        try:
            return [call for phase in recipe.phases for call in bound.calls(phase)]
        except KernelUnavailable as error:
            self.tell(error)
            return None

    def tell(self, reason: KernelUnavailable) -> None:
        """Say why something is not done by kernels or libraries of a card."""
        self._reasons.tell(str(reason))

    def stream(self) -> int:
        """The stream that is current, as libraries know it."""
        return int(self._cupy.cuda.get_current_stream().ptr)

    def clear(self, address: int, nbytes: int) -> None:
        """Let so many bytes become 0."""
        self._cupy.cuda.runtime.memsetAsync(address, 0, nbytes, self.stream())

    def products(self, recipe: CardRecipe, phase: ProductPhase, places: ProductPlaces) -> list[KernelCall]:
        """A product, in what a recipe leaves of the workspace. Raises KernelUnavailable."""
        if self._products is None:
            raise KernelUnavailable(f"there is no cuBLASLt; instead: {INSTEAD['cublasLt']}")
        used = self._used(recipe)
        bound = self._products.bound(phase, places, self.workspace.nbytes - used, self.choices)
        return [(self._multiply, (each, self.workspace.data.ptr + used)) for each in bound]

    def _used(self, recipe: CardRecipe) -> int:
        """Bytes of the workspace that are not the library's."""
        return min(-(-recipe.workspace // _APART) * _APART, int(self.workspace.nbytes))

    def _multiply(self, bound: BoundMatmul, workspace: int) -> None:
        bound.launch(workspace, self.stream())

    def _opened(self) -> ProductCalls | None:
        found = card_library("cublasLt")
        try:
            if found.loaded is None:
                raise KernelUnavailable(str(found))
            return ProductCalls(CublasLt(found.loaded), self._uploaded, self._card)
        except KernelUnavailable as error:
            self.tell(error)
            return None

    def _uploaded(self, addresses: Sequence[int]) -> Uploaded:
        array = self._cupy.asarray(np.array(addresses, np.int64))
        return int(array.data.ptr), array


class _Placed:
    """A recipe on arrays."""

    def __init__(
        self,
        cards: CardCalls,
        recipe: CardRecipe,
        module: CudaModule | None,
        operands: Sequence[Array],
        results: Sequence[Array],
        flag: int,
    ) -> None:
        self._cards, self._recipe, self._module, self._flag = cards, recipe, module, flag
        self._operands, self._results = operands, results

    def calls(self, phase: Phase) -> list[KernelCall]:
        """Raises KernelUnavailable."""
        if isinstance(phase, ProductPhase):
            bias = 0 if phase.bias is None else self._address(phase.bias)
            a, b, c = map(self._address, (phase.a, phase.b, phase.c))
            places = ProductPlaces(a, b, c, bias)
            return self._cards.products(self._recipe, phase, places)
        if isinstance(phase, CudnnPhase):
            assert self._cards.cudnn is not None
            call = cudnn_call(phase, self._cards.cudnn.library, self._address, self._cards.stream)
            if call is None:
                raise KernelUnavailable("arrays do not begin where cuDNN reads them")
            return [call]
        if isinstance(phase, ClearPhase):
            return [(self._cards.clear, (self._address(phase.at), phase.nbytes))]
        assert self._module is not None
        table = np.array([x if isinstance(x, int) else self._address(x) for x in phase.table], np.int64)
        kept = (*self._operands, *self._results)
        return [(self._module.launch, (Launch(phase.kernel, phase.grid, phase.block, table, kept),))]

    def _address(self, place: CardPlace) -> int:
        if place.kind == "workspace":
            return int(self._cards.workspace.data.ptr) + place.offset
        if place.kind == "flag":
            return self._flag + place.offset
        arrays = self._operands if place.kind == "operand" else self._results
        return int(arrays[place.number].data.ptr) + place.offset


def recipe_on(terms: CardTerms, step: Step, operands: Sequence[Any], out: Any) -> CardRecipe | None:
    """The recipe of a step on these arrays, as they lie."""
    if not has_card_recipes(step.op):
        return None
    return card_recipe_for(step.op, terms, _lying(out), *map(_lying, operands), **step.attrs)


def may_have_recipes(plan: Plan) -> bool:
    """Whether a plan, or one that it runs, has nodes that there are recipes for: made they are when it is compiled."""
    return any(has_card_recipes(step.op) for here in plans_within(plan) for step in here.steps)


def recipe_texts(recipes: Iterable[CardRecipe]) -> list[str]:
    """The texts with their kernels, each once."""
    return list(dict.fromkeys(recipe.text for recipe in recipes if recipe.text))


def recipes_of_plan(plan: Plan, terms: CardTerms) -> Iterator[CardRecipe]:
    """Those of its nodes as they are planned to lie, and of the plans that it runs."""
    for here in plans_within(plan):
        if not any(has_card_recipes(step.op) for step in here.steps):
            continue
        types = Storage(graph_of(here, registry())).types
        for step in here.steps:
            out = step.types if step.op.several else step.types[0]
            operands = [types[i] for i in step.operands]
            found = has_card_recipes(step.op) and card_recipe_for(step.op, terms, out, *operands, **step.attrs)
            if found:
                yield found


def _card(cupy: Any) -> str:
    """What tells a kind of card from others."""
    device = cupy.cuda.Device()
    name = cupy.cuda.runtime.getDeviceProperties(device.id)["name"]
    return f"{name.decode()} sm_{device.compute_capability}"


def _lying(array: Any) -> Any:
    """The type of an array, or of several, with the strides that it has."""
    if isinstance(array, tuple):
        return tuple(map(_lying, array))
    return Strided(TensorType.of(array), array.strides)
