"""Binding: from a step of a plan to the calls that run it on a GPU.

A step runs by its compiled kernel, else by a GPU recipe, else by its op's own implementation with CuPy:

    fused node, scan as one kernel        → launches of the compiled kernel (`engine.cuda.kernels`)
    product, convolution, sum, gather …   → a recipe, found by geometry or op in the tables below: phases, each a launch
                                            of a kernel of its text, a cuBLASLt call, a cuDNN plan, or a memset
    all other ops                         → `op.forward` with CuPy, whose launches may be recorded or not

`CudaPlans` compiles a plan: it builds the recipes of all steps, compiles the kernels and the recipes' texts in
parallel, and lets library algorithms be chosen by timing. `CudaBinder` binds the steps of one plan to arrays, with
`CardCalls` for the recipes. All phases use the worker's one workspace, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from engine.codegen.microkernels.convolution import DirectedConvolution
from engine.codegen.microkernels.product import Product
from engine.codegen.microkernels.windows import DirectedPool
from engine.codegen.native.machine_code import KernelStore, KernelUnavailable, Reasons
from engine.compiler.body_plans import plans_within
from engine.compiler.geometry import GEOMETRIES, geometry_of, lookup_by_class
from engine.compiler.plan import MemoryBlocks, Plan, Step, graph_of
from engine.cuda.attention import (
    attention_gradients_recipe,
    attention_rows_recipe,
    gradients_card_recipe,
    rows_card_recipe,
)
from engine.cuda.autotuning import NO_CHOICES, Choices, CudaClock
from engine.cuda.card_recipe import CardPlace, CardRecipe, ClearPhase, CudnnPhase, Phase, ProductPhase
from engine.cuda.column_convolutions import convolution_card_recipe
from engine.cuda.cublaslt import CublasLt
from engine.cuda.cudnn_plans import CudnnLibrary, cudnn_library
from engine.cuda.cudnn_recipes import CardTerms, CudnnRecipes
from engine.cuda.gather_scatter import gather_card_recipe, scatter_card_recipe, segments_card_recipe
from engine.cuda.kernels import CompiledCudaKernel, CudaCode, CudaKernels, CudaModule
from engine.cuda.launch import Launch
from engine.cuda.libraries import FALLBACKS, card_library
from engine.cuda.pooling import pool_card_recipe
from engine.cuda.products import (
    BoundMatmul,
    ProductCalls,
    ProductPlaces,
    Uploaded,
    laid_products_card_recipe,
    product_card_recipe,
)
from engine.cuda.sums import mean_card_recipe, sum_card_recipe
from engine.ir.op import Array, Kernel, KernelCall
from engine.ir.run_context import RunContext
from engine.ir.run_report import IEEE, Precision
from engine.ir.tensor_type import Strided, TensorType
from engine.ops import registry
from engine.ops.index.gather import Gather, ScatterAdd
from engine.ops.linalg.layouts import PermutedResults, StridedProducts
from engine.ops.nn.attention import HalfGradients, HalfRows
from engine.ops.nn.attention_tiles import AttentionGradients, AttentionRows
from engine.ops.reduce.segments import SegmentSum
from engine.ops.reduce.sums import Mean, Sum
from engine.runtime.binding import Binder

#: kind of geometry → function (terms, geometry) that returns the recipe or None
GEOMETRY_CARD_RECIPES: Final[Mapping[type, Callable[[CardTerms, Any], CardRecipe | None]]] = MappingProxyType(
    {DirectedConvolution: convolution_card_recipe, DirectedPool: pool_card_recipe, Product: product_card_recipe}
)
#: class of ops → function (terms, result type, operand types, attributes) that returns the recipe or None
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
#: assumed alignment of cuDNN's addresses in bytes: its frontend does not state another one
CUDNN_ALIGNMENT: Final = 16
#: alignment in bytes of a library's part of the workspace, after the recipe's part; libraries do not benefit from more
_LIBRARY_ALIGNMENT: Final = 256


def has_card_recipes(op: Kernel) -> bool:
    """Return whether ops of this class have GPU recipes."""
    is_listed = lookup_by_class(GEOMETRIES, op) is not None or lookup_by_class(CARD_RECIPES, op) is not None
    return is_listed or isinstance(op, StridedProducts | PermutedResults)


def card_recipe_for(op: Kernel, terms: CardTerms, out: Any, *types: Any, **attrs: Any) -> CardRecipe | None:
    """Return the recipe for a result and operands of these types and strides.

    Return None if the op's own implementation is as good, or if the recipe would need more workspace than it may use.
    """
    if isinstance(op, PermutedResults):
        return card_recipe_for(op.op, terms, op.inner_types(out), *types, **attrs)
    geometry = geometry_of(op, out, *types, **attrs)
    if geometry is not None:
        recipe = GEOMETRY_CARD_RECIPES[type(geometry)](terms, geometry)
    elif isinstance(op, StridedProducts):
        recipe = laid_products_card_recipe(terms, op.parts, out, *types)
    else:
        build = lookup_by_class(CARD_RECIPES, op)
        recipe = build and build(terms, out, *types, **attrs)
    return recipe if recipe is not None and recipe.workspace <= terms.workspace else None


def cudnn_call(
    phase: CudnnPhase, library: CudnnLibrary, address: Callable[[CardPlace], int], stream: Callable[[], int]
) -> KernelCall | None:
    """Return the call that launches a cuDNN plan; `stream` returns the current stream.

    Return None if an address is not aligned as cuDNN needs it.
    """
    addresses = {number: address(place) for number, place in phase.tensors}
    workspace = address(phase.workspace) if phase.plan.workspace else 0
    if any(each % CUDNN_ALIGNMENT for each in (workspace, *addresses.values())):
        return None
    graph = phase.plan.graph
    return lambda: graph.execute(addresses, workspace, handle=library.handle_on(stream())), ()


class CardCalls:
    """Factory of the calls of recipes on the current GPU. All of them use `workspace`, one after the other."""

    def __init__(
        self,
        cupy: Any,
        workspace: Array,
        store: KernelStore | None = None,
        clock: CudaClock | None = None,
        *,
        deterministic: bool = True,
    ) -> None:
        """`workspace` is memory that lives as long as this object.

        If `deterministic`, sums have a fixed order. cuDNN plans are cached in `store`; with a `clock`, the choices of
        the fastest library algorithms are cached there, too.
        """
        self.workspace, self._deterministic = workspace, deterministic
        self._cupy, self._card = cupy, _gpu_name(cupy)
        self._store, self._clock = KernelStore() if store is None else store, clock
        #: choices of algorithms for one plan; before `with_open_choices`, the libraries' first proposals
        self.choices = NO_CHOICES
        cudnn = cudnn_library(self._card)
        self.cudnn = None if cudnn is None else CudnnRecipes(cudnn, self._store)
        self._reasons = Reasons("on this card, ops run by CuPy's functions: %s")
        self._products = self._open_products()

    def terms(self, precision: Precision, *, may_wait: bool = False) -> CardTerms:
        """Return the terms of recipes. Library plans that take seconds to build are built only if `may_wait`."""
        return CardTerms(precision, self.workspace.nbytes, self._deterministic, self.cudnn, may_wait, self.choices)

    def with_open_choices(self, stop: Callable[[], bool]) -> CardCalls:
        """Return a copy for one plan, with choices that stay open until `stop` returns True."""
        cards = copy(self)
        cards.choices = Choices(self._store, self._clock, stop)
        return cards

    def choose_products(self, recipes: Iterable[CardRecipe]) -> None:
        """Choose algorithms for the products of recipes, while the choices are open."""
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
        """Return the calls that compute `results`; `flag` is an address. Log the reason and return None on failure."""
        if recipe.text and recipe.text not in modules:
            return None  # not compiled yet, or refused (logged when that happened)
        bound = _BoundRecipe(self, recipe, modules.get(recipe.text), operands, results, flag)
        try:
            return [call for phase in recipe.phases for call in bound.calls(phase)]
        except KernelUnavailable as error:
            self.tell(error)
            return None

    def tell(self, reason: KernelUnavailable) -> None:
        """Log why kernels or libraries of the GPU are not used."""
        self._reasons.log(str(reason))

    def stream(self) -> int:
        """Return the address of the current stream."""
        return int(self._cupy.cuda.get_current_stream().ptr)

    def clear(self, address: int, nbytes: int) -> None:
        """Set `nbytes` bytes to zero."""
        self._cupy.cuda.runtime.memsetAsync(address, 0, nbytes, self.stream())

    def products(self, recipe: CardRecipe, phase: ProductPhase, places: ProductPlaces) -> list[KernelCall]:
        """Return the calls of a product, which uses the rest of a recipe's workspace. Raises KernelUnavailable."""
        if self._products is None:
            raise KernelUnavailable(f"there is no cuBLASLt; instead: {FALLBACKS['cublasLt']}")
        used = self._used(recipe)
        bound = self._products.bound(phase, places, self.workspace.nbytes - used, self.choices)
        return [(self._multiply, (each, self.workspace.data.ptr + used)) for each in bound]

    def _used(self, recipe: CardRecipe) -> int:
        """Return the number of workspace bytes before the library's part."""
        return min(-(-recipe.workspace // _LIBRARY_ALIGNMENT) * _LIBRARY_ALIGNMENT, int(self.workspace.nbytes))

    def _multiply(self, bound: BoundMatmul, workspace: int) -> None:
        bound.launch(workspace, self.stream())

    def _open_products(self) -> ProductCalls | None:
        library = card_library("cublasLt")
        try:
            if library.loaded is None:
                raise KernelUnavailable(str(library))
            return ProductCalls(CublasLt(library.loaded), self._upload, self._card)
        except KernelUnavailable as error:
            self.tell(error)
            return None

    def _upload(self, addresses: Sequence[int]) -> Uploaded:
        array = self._cupy.asarray(np.array(addresses, np.int64))
        return int(array.data.ptr), array


class _BoundRecipe:
    """Recipe bound to arrays."""

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
        """Return the calls of a phase. Raises KernelUnavailable."""
        if isinstance(phase, ProductPhase):
            a, b, c = map(self._address, (phase.a, phase.b, phase.c))
            places = ProductPlaces(a, b, c, 0 if phase.bias is None else self._address(phase.bias))
            return self._cards.products(self._recipe, phase, places)
        if isinstance(phase, CudnnPhase):
            assert self._cards.cudnn is not None
            call = cudnn_call(phase, self._cards.cudnn.library, self._address, self._cards.stream)
            if call is None:
                raise KernelUnavailable("arrays do not begin where cuDNN reads them")
            return [call]
        if isinstance(phase, ClearPhase):
            return [(self._cards.clear, (self._address(phase.place), phase.nbytes))]
        assert self._module is not None
        table = np.array([x if isinstance(x, int) else self._address(x) for x in phase.table], np.int64)
        arrays = (*self._operands, *self._results)
        return [(self._module.launch, (Launch(phase.kernel, phase.grid, phase.block, table, arrays),))]

    def _address(self, place: CardPlace) -> int:
        if place.kind == "workspace":
            return int(self._cards.workspace.data.ptr) + place.offset
        if place.kind == "flag":
            return self._flag + place.offset
        arrays = self._operands if place.kind == "operand" else self._results
        return int(arrays[place.number].data.ptr) + place.offset


def recipe_on(terms: CardTerms, step: Step, operands: Sequence[Any], out: Any) -> CardRecipe | None:
    """Return the recipe of a step for arrays with these strides."""
    if not has_card_recipes(step.op):
        return None
    return card_recipe_for(step.op, terms, _strided_type(out), *map(_strided_type, operands), **step.attrs)


def recipe_texts(recipes: Iterable[CardRecipe]) -> list[str]:
    """Return the distinct texts of recipes' kernels."""
    return list(dict.fromkeys(recipe.text for recipe in recipes if recipe.text))


def recipes_of_plan(plan: Plan, terms: CardTerms) -> Iterator[CardRecipe]:
    """Yield the recipes of a plan's nodes with their planned layouts, and those of the plans that it runs."""
    for inner in plans_within(plan):
        if not any(has_card_recipes(step.op) for step in inner.steps):
            continue
        types = MemoryBlocks(graph_of(inner, registry())).types
        for step in inner.steps:
            out = step.types if step.op.several else step.types[0]
            operands = [types[i] for i in step.operands]
            recipe = has_card_recipes(step.op) and card_recipe_for(step.op, terms, out, *operands, **step.attrs)
            if recipe:
                yield recipe


def _gpu_name(cupy: Any) -> str:
    device = cupy.cuda.Device()
    name = cupy.cuda.runtime.getDeviceProperties(device.id)["name"]
    return f"{name.decode()} sm_{device.compute_capability}"


def _strided_type(array: Any) -> Any:
    """Return the type of an array, or of a tuple of arrays, with its strides."""
    if isinstance(array, tuple):
        return tuple(map(_strided_type, array))
    return Strided(TensorType.of(array), array.strides)


class StepLaunches(NamedTuple):
    """Calls of a step, and whether their launches may be recorded.

    If `notes`, kernels set the step's flag for errors in their data. `precision` is how float32 operands are read.
    """

    calls: Sequence[KernelCall]
    is_captured: bool
    notes: bool = False
    precision: Precision = IEEE


class CudaBinder(Binder):
    """Binder of steps to compiled kernels, to recipes, or to CuPy functions.

    `modules` are the compiled texts of recipes. A recipe without kernels of its own needs none.
    """

    def __init__(
        self,
        compiled: Mapping[Kernel, CudaCode],
        modules: Mapping[str, CudaModule] = MappingProxyType({}),
        cards: CardCalls | None = None,
    ) -> None:
        self._compiled, self._modules, self._cards = compiled, modules, cards

    @property
    def has_kernels(self) -> bool:
        """Whether anything was compiled."""
        return bool(self._compiled or self._modules)

    def workspace(self, step: Step) -> int:
        """Return the bytes of a kernel's workspace. Recipes use the worker's, other ops allocate from the pool."""
        code = self._compiled.get(step.op)
        return 0 if code is None else code.workspace

    def launches(
        self, run: RunContext, step: Step, operands: Sequence[Array], out: Any, flag: int, precision: Precision = IEEE
    ) -> StepLaunches:
        """Bind a step; `flag` is the address of a byte set to 1 if a kernel gets an argument out of range.

        `precision` is how products and convolutions may read float32 operands.
        """
        calls = self._by_kernel(run, step, operands, out, flag)
        if calls is not None:
            return StepLaunches(calls, is_captured=True)
        launches = self._by_recipe(step, operands, out, flag, precision)
        if launches is not None:
            return launches
        # `forward` instead of `bind`, because an op may bind NumPy functions.
        forward = partial(step.op.forward, run, *operands, out=out, **step.attrs), ()
        return StepLaunches([forward], step.op.is_captured)

    def _by_kernel(
        self, run: RunContext, step: Step, operands: Sequence[Array], out: Any, flag: int
    ) -> Sequence[KernelCall] | None:
        code = self._compiled.get(step.op)
        if isinstance(code, CompiledCudaKernel):
            return code.launches(operands, out, run.workspace, flag)
        # The kernel expects at least one step; an empty scan runs by its op's own implementation.
        if code is not None and step.attrs["length"]:
            return code.launches(operands, out, step.attrs, flag)
        return None

    def _by_recipe(
        self, step: Step, operands: Sequence[Array], out: Any, flag: int, precision: Precision
    ) -> StepLaunches | None:
        if self._cards is None:
            return None
        recipe = recipe_on(self._cards.terms(precision), step, operands, out)
        if recipe is None:
            return None
        results = out if isinstance(out, tuple) else (out,)
        calls = self._cards.calls(recipe, self._modules, operands, results, flag)
        return None if calls is None else StepLaunches(calls, True, recipe.notes, recipe.precision)


class CudaPlans:
    """Factory of plan binders, for `ExecutionTiers`."""

    #: number of threads of a fused kernel that the planner assumes
    threads: ClassVar[int] = 1
    has_microkernels: ClassVar[bool] = False
    few_launches: ClassVar[bool] = True

    def __init__(self, kernels: CudaKernels, cards: CardCalls) -> None:
        self._kernels, self._cards = kernels, cards
        #: binder for plans without compiled kernels
        self.uncompiled_binder: Binder = CudaBinder({}, cards=cards)

    @property
    def compiled(self) -> int:
        """Number of kernels compiled so far."""
        return self._kernels.compiled

    def has_recipes(self, plan: Plan) -> bool:
        """Return whether steps that are not fused have kernels to compile, or algorithms to choose."""
        return any(has_card_recipes(step.op) for inner in plans_within(plan) for step in inner.steps)

    def compile(
        self, plan: Plan, stop: Callable[[], bool] = lambda: False, first: Iterable[Kernel] = ()
    ) -> Binder | None:
        """Return the binder of a plan; None if `stop` returned True in between. Raises KernelUnavailable."""
        cards = self._cards.with_open_choices(stop)
        recipes = list(recipes_of_plan(plan, cards.terms(plan.precision, may_wait=True)))
        texts = recipe_texts(recipes)
        compiled = self._kernels.compile(plan, stop, first, texts)
        if compiled is None:
            return None
        modules: dict[str, CudaModule] = {}
        for text in texts:
            if stop():
                return None
            try:
                modules[text] = self._kernels.module(text)
            except KernelUnavailable as error:
                self._cards.tell(error)
        cards.choose_products(recipes)
        cards.choices.close()
        return CudaBinder(compiled, modules, cards)
