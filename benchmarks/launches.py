"""What a card launches for one run of a workload, by kind, and as how many recordings: counted without a card."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

from benchmarks.sides import LIMITS, planned
from benchmarks.suite import find
from benchmarks.workload import Workload
from engine import Compiler, Plan, registry
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import MemoryBlocks, Step, graph_of
from engine.cuda.autotuning import NO_CHOICES, Choices
from engine.cuda.binding import CudaPlans, card_recipe_for
from engine.cuda.card_recipe import CudnnPhase, ProductPhase
from engine.cuda.cudnn_plans import CudnnPlan, CudnnPlans, PlanRequest
from engine.cuda.cudnn_recipes import CardTerms, CudnnAttention, CudnnConvolutions, CudnnRecipes
from engine.cuda.kernels import cuda_fused_kernel
from engine.ir.op import View
from engine.ops.common.numerics import NullaryOp
from engine.runtime.interpreter import DEVICE_WORKSPACE
from engine.runtime.tiers import compilable

#: by what something is launched: cuBLASLt, our loops, kernels of ours for other nodes, cuDNN, CuPy's functions
KINDS: Final = ("products", "loops", "kernels", "cuDNN's", "CuPy's")
#: what recipes are made within, as a worker has it by default
TERMS: Final = CardTerms(workspace=DEVICE_WORKSPACE)


class _EveryPlan(CudnnPlans):
    """Plans of a cuDNN that has one for all that it is asked for, each of one kernel; none of them can run."""

    def __init__(self) -> None:
        """Without the library."""

    def find(self, request: PlanRequest, *, may_plan: bool = True, choices: Choices = NO_CHOICES) -> CudnnPlan:
        """One that takes no workspace."""
        return CudnnPlan(None, 0)


class _WithEveryPlan(CudnnRecipes):
    """Recipes of such a cuDNN."""

    def __init__(self) -> None:
        self.convolutions, self.attention = CudnnConvolutions(_EveryPlan()), CudnnAttention(_EveryPlan())


#: the same where cuDNN is installed
WITH_CUDNN: Final = TERMS._replace(cudnn=_WithEveryPlan())


_BY: Final = {ProductPhase: "products", CudnnPhase: "cuDNN's"}


class StepLaunch(NamedTuple):
    """Launches of a step, all of one kind, and whether they may be recorded; an op of CuPy's counts as one."""

    name: str
    kind: str
    launches: int
    is_captured: bool


class Launches(NamedTuple):
    """Launches of a plan by kind, its recordings, as far as ops say what may be recorded, and which ops are CuPy's."""

    kinds: Counter[str]
    recordings: int
    by_cupy: Counter[str]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.kinds.values())


def launches_of(work: Workload, terms: CardTerms = TERMS) -> Launches:
    """Of a workload's plan with all that is compiled, where there is cuBLASLt."""
    found = [*launches_of_plan(card_plan(work), terms._replace(precision=work.precision))]
    kinds, by_cupy = Counter[str](), Counter[str]()
    for each in found:
        kinds[each.kind] += each.launches
        if each.kind == "CuPy's":
            by_cupy[each.name] += 1
    return Launches(kinds, sum(is_captured for is_captured, _ in groupby(found, lambda x: x.is_captured)), by_cupy)


def card_plan(work: Workload) -> Plan:
    """The plan that a card runs a workload by, once all of it is compiled."""
    plan = planned(Compiler(LIMITS, splits_sums=CudaPlans.few_launches), work)
    alike, within = compilable(plan, CudaPlans)
    return within.plan if within else alike


def launches_of_plan(plan: Plan, terms: CardTerms = TERMS) -> Iterator[StepLaunch]:
    """What its steps launch, in their order; views and constants launch nothing."""
    types = MemoryBlocks(graph_of(plan, registry())).types
    for step in plan.steps:
        is_view = isinstance(step.op, View) and not step.places
        if not is_view and not (isinstance(step.op, NullaryOp) and step.result not in plan.results):
            yield from _launches(step, [types[i] for i in step.operands], terms)


def _launches(step: Step, types: list[Any], terms: CardTerms) -> Iterator[StepLaunch]:
    if isinstance(step.op, Fused):
        yield StepLaunch(step.op.name, "loops", len(cuda_fused_kernel(step.op).kernels), is_captured=True)
        return
    out = step.types if step.op.several else step.types[0]
    recipe = card_recipe_for(step.op, terms, out, *types, **step.attrs)
    if recipe is None:
        yield StepLaunch(step.op.name, "CuPy's", 1, step.op.is_captured)
        return
    for phase in recipe.phases:
        yield StepLaunch(step.op.name, _BY.get(type(phase), "kernels"), 1, is_captured=True)


def line(name: str, found: Launches) -> str:
    """One row."""
    kinds = ", ".join(f"{found.kinds[kind]:3} {kind}" for kind in KINDS)
    by_cupy = ", ".join(f"{count} {op}" for op, count in found.by_cupy.most_common())
    return f"{name:6} {found.total:4} launches: {kinds}; recordings: {found.recordings}" + f" ({by_cupy})" * bool(
        by_cupy
    )


def main() -> None:
    """Print a line for each workload."""
    parser = argparse.ArgumentParser(description="Count what a card launches for a run of workloads.")
    parser.add_argument("names", nargs="+", help="names of workloads")
    parser.add_argument(
        "--cudnn", action="store_true", help="where cuDNN is installed, and has a plan for all it is asked"
    )
    asked = parser.parse_args()
    for name in asked.names:
        print(line(name, launches_of(find(name)(), WITH_CUDNN if asked.cudnn else TERMS)), flush=True)


if __name__ == "__main__":
    main()
