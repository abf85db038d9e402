"""Binding: from a step to the calls that run it on a GPU.

A step has a compiled kernel, else a card recipe, by the table below, else its op's own function with CuPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from engine.executors.binding import Binder
from engine.executors.cuda_kernels import CompiledCudaLoop, CudaCode, CudaKernels, CudaModule
from engine.executors.cuda_recipes import CardCalls, may_have_recipes, recipe_on, recipe_texts, recipes_of_plan
from engine.graph.op import Array, Kernel, KernelCall
from engine.graph.precision import IEEE, Precision
from engine.graph.run_context import RunContext
from engine.native.kernel_errors import KernelUnavailable
from engine.planning.plan import Plan, Step


class StepLaunches(NamedTuple):
    """The calls that make a step, and whether a card may record what they launch.

    Where it `notes`, kernels set the step's flag for what they find in their data. `precision` is how float32 operands
    are read.
    """

    calls: Sequence[KernelCall]
    is_captured: bool
    notes: bool = False
    precision: Precision = IEEE


class CudaBinder(Binder):
    """Binding of loops to their kernels, and of other steps to recipes, where there are any, else to functions of CuPy.

    `modules` are compiled texts of recipes. Of a recipe without kernels of its own, nothing is compiled.
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
        """Whether anything was compiled for it."""
        return bool(self._compiled or self._modules)

    def workspace(self, step: Step) -> int:
        """That of a loop's kernel: recipes have the worker's, and what other ops take, they take of the pool."""
        found = self._compiled.get(step.op)
        return 0 if found is None else found.workspace

    def launches(
        self,
        run: RunContext,
        step: Step,
        operands: Sequence[Array],
        out: Any,
        flag: int,
        precision: Precision = IEEE,
    ) -> StepLaunches:
        """As `calls`; `flag` is the address of a byte that becomes 1 where a loop is out of range.

        `precision` is how products and convolutions may read float32 operands.
        """
        calls = self._by_loop(run, step, operands, out, flag)
        if calls is not None:
            return StepLaunches(calls, is_captured=True)
        found = self._by_recipe(step, operands, out, flag, precision)
        if found is not None:
            return found
        # What an op's own `bind` comes down to may be in NumPy's words alone.
        own = partial(step.op.forward, run, *operands, out=out, **step.attrs), ()
        return StepLaunches([own], step.op.is_captured)

    def _by_loop(
        self, run: RunContext, step: Step, operands: Sequence[Array], out: Any, flag: int
    ) -> Sequence[KernelCall] | None:
        found = self._compiled.get(step.op)
        if isinstance(found, CompiledCudaLoop):
            return found.launches(operands, out, run.workspace, flag)
        if found is not None and step.attrs["length"]:
            return found.launches(operands, out, step.attrs, flag)
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
    """Maker of binders of plans, for `ExecutionTiers`."""

    #: what may take part in a loop, as it is planned
    threads: ClassVar[int] = 1
    has_microkernels: ClassVar[bool] = False
    few_launches: ClassVar[bool] = True

    def __init__(self, kernels: CudaKernels, cards: CardCalls) -> None:
        self._kernels, self._cards = kernels, cards
        #: binds plans of which nothing is compiled
        self.without: Binder = CudaBinder({}, cards=cards)

    @property
    def compiled(self) -> int:
        """Kernels that were compiled so far."""
        return self._kernels.compiled

    def has_recipes(self, plan: Plan) -> bool:
        """Whether steps that are no loops may have kernels that are to be compiled, or algorithms that are chosen."""
        return may_have_recipes(plan)

    def compile(
        self, plan: Plan, stop: Callable[[], bool] = lambda: False, first: Iterable[Kernel] = ()
    ) -> Binder | None:
        """What binds all steps of a plan; None where `stop` came true in between. Raises KernelUnavailable."""
        cards = self._cards.choosing(stop)
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
