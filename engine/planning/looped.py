"""Control flow in plans: kernels that run planned bodies, and bodies of scans that compile to one recurrence."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from engine.bodies.runs_functions import LEAST_STEP_FLOPS, RunsFunctions, in_parts
from engine.graph.dtypes import DTYPES
from engine.graph.limits import Deadline
from engine.graph.op import Array, Kernel, KernelCall, ResultTypes
from engine.graph.run_context import RunContext, RunPlan
from engine.planning.plan import Plan, Step
from engine.planning.step_loop import StepLoop

#: steps of bodies' plans, from which on a loop waits for its kernels: some 0.2 s without
_LONG: Final = 20_000


def has_long_loops(plan: Plan) -> bool:
    """Whether a plan may run more steps of bodies than are made in the time that it takes to compile them."""
    known: dict[Plan, int] = {}
    return any(isinstance(step.op, RunsPlans) and _steps_within(step, known) >= _LONG for step in plan.steps)


def _steps_within(step: Step, known: dict[Plan, int]) -> int:
    """Steps of its bodies, as often as they may run; `known` are those of plans that were gone through."""
    if not isinstance(step.op, RunsPlans):
        return 1
    for plan in step.op.plans:
        if plan not in known:
            known[plan] = sum(_steps_within(inner, known) for inner in plan.steps)
    return int(step.op.most_steps(step.attrs)) * sum(known[plan] for plan in step.op.plans)


@dataclass(frozen=True, eq=False)
class RunsPlans(Kernel):
    """Base: runs `plans`, the bodies of a node of the op `source`. One is made for each node.

    What a body works in counts as workspace: its plan's peak, but for what it reads of the operands.
    """

    source: RunsFunctions
    plans: tuple[Plan, ...]

    operands = ("operands...?",)
    several = True
    internal = True
    dtypes = DTYPES
    is_captured = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "attrs", self.source.attrs)
        object.__setattr__(self, "runs", tuple(dict.fromkeys(self.plans)))

    @property
    def name(self) -> str:  # type: ignore[override]
        """The op's name."""
        return self.source.name

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Infer as the op does."""
        return self.source.infer(*types, **attrs)

    def forward(self, run: RunContext, *arrays: Array, out: Sequence[Array], **attrs: Any) -> None:
        """Run it once."""
        function, arguments = self.bind(run, arrays, out, attrs)
        function(*arguments)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Any, attrs: Any) -> KernelCall:
        """The bodies bound, each to memory of its own."""
        return self.repeat, (run, [run.bind_plan(plan) for plan in self.plans], operands, out, attrs)

    def repeat(
        self, run: RunContext, bodies: Sequence[RunPlan], operands: Sequence[Array], out: Any, attrs: Any
    ) -> None:
        """Run the bodies: here, the first of them, once."""
        _run_once(run, bodies[0], operands, out)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of as many steps as there may be, each of which counts a few at least."""
        count: int = self.most_steps(attrs)
        return count * max(LEAST_STEP_FLOPS, sum(plan.flops for plan in self.plans))

    def most_steps(self, attrs: Any) -> int:
        """Upper bound of the number of steps."""
        return 1

    def number_of(self, k: int, operands: Sequence[Array], attrs: Any) -> int | None:
        """The number of the step that the k-th run of a body is; None where there are no steps."""
        return None

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Memory that the bodies work in; carries are there twice."""
        moved = out[: attrs.get("carries", 0)] if isinstance(out, tuple) else ()
        passed_on = self.plans[-1].borrowed
        carries: int = sum(type.nbytes for k, type in enumerate(moved) if k not in passed_on)
        working: int = sum(plan.working_bytes for plan in self.runs)
        return carries + working


@dataclass(frozen=True, eq=False)
class PlannedScan(RunsPlans):
    """A scan; `step_loop` is its body as one loop, where it is to be compiled and is one."""

    step_loop: StepLoop | None = None

    #: results between the carries and the stacks, and those of the body that come before what is stacked
    beside: ClassVar[int] = 0
    flags: ClassVar[int] = 0
    #: whether there may be fewer steps than entries of stacks
    may_end_early: ClassVar[bool] = False

    def most_steps(self, attrs: Any) -> int:
        """Its length."""
        return int(attrs["length"])

    def number_of(self, k: int, operands: Sequence[Array], attrs: Any) -> int | None:
        """Number of the entries that the step reads."""
        return self.steps(operands, attrs) - 1 - k if attrs["reverse"] else k

    def steps(self, operands: Sequence[Array], attrs: Any) -> int:
        """Number of steps: its length."""
        return int(attrs["length"])

    def repeat(
        self, run: RunContext, bodies: Sequence[RunPlan], operands: Sequence[Array], out: Any, attrs: Any
    ) -> None:
        """Step by step."""
        _go_through(run, bodies[0], operands, out, attrs, attrs["length"])


class PlannedCountedScan(PlannedScan):
    """A scan of as many steps as the last operand says; what it did not come to is zeros."""

    may_end_early = True

    def steps(self, operands: Sequence[Array], attrs: Any) -> int:
        """The count, at most its length."""
        return min(int(operands[-1]), int(attrs["length"]))

    def repeat(
        self, run: RunContext, bodies: Sequence[RunPlan], operands: Sequence[Array], out: Any, attrs: Any
    ) -> None:
        """Step by step, as many as there are."""
        length = self.steps(operands, attrs)
        operands = operands[:-1]
        _go_through(run, bodies[0], operands, out, attrs, length)
        for stack in out[attrs["carries"] :]:
            stack[length:] = 0


def _go_through(run: RunContext, body: RunPlan, operands: Sequence[Array], out: Any, attrs: Any, length: int) -> None:
    consts, state, sequences = in_parts(operands, attrs["carries"], attrs["sequences"])
    carries = len(state)
    steps: Iterable[int] = range(length - 1, -1, -1) if attrs["reverse"] else range(length)
    for t in steps:
        fed: dict[Hashable, Array] = dict(enumerate([*consts, *state, *[x[t, ...] for x in sequences]]))
        state = _stacked(body(fed, run.deadline), carries, out[carries:], t)
    for last, value in zip(out, state, strict=False):
        last[...] = value


def _stacked(found: Sequence[Array], carries: int, stacks: Sequence[Array], t: int) -> Sequence[Array]:
    """The carries that a step found; the rest goes to entry t of the stacks, so that its memory serves again."""
    for stack, entry in zip(stacks, found[carries:], strict=True):
        stack[t, ...] = entry
    return found[:carries]


class PlannedWhile(RunsPlans):
    """A loop as long as its condition holds: the plan of that, and of a step, which asks it again for what it gives.

    The step's flag stands between carries and stacks; in their place, the loop has steps and finished.
    """

    beside: ClassVar[int] = 2
    flags: ClassVar[int] = 1
    may_end_early: ClassVar[bool] = True

    def most_steps(self, attrs: Any) -> int:
        """The bound."""
        return int(attrs["max_steps"])

    def number_of(self, k: int, operands: Sequence[Array], attrs: Any) -> int | None:
        """Number of steps before."""
        return k

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the condition, and of as many steps as there may be."""
        asked, step = self.plans
        return asked.flops + self.most_steps(attrs) * max(LEAST_STEP_FLOPS, step.flops)

    def repeat(
        self, run: RunContext, bodies: Sequence[RunPlan], operands: Sequence[Array], out: Any, attrs: Any
    ) -> None:
        """Step by step."""
        condition, step = bodies
        consts, state, _ = in_parts(operands, attrs["carries"])
        carries, steps = len(state), 0
        (on,) = condition(dict(enumerate(operands)), run.deadline)
        while steps < attrs["max_steps"] and bool(on):
            fed: dict[Hashable, Array] = dict(enumerate([*consts, *state]))
            *state, on = _stacked(step(fed, run.deadline), carries + 1, out[carries + 2 :], steps)
            steps += 1
        for last, value in zip(out, state, strict=False):
            last[...] = value
        out[carries][...] = steps
        out[carries + 1][...] = not bool(on)
        for stack in out[carries + 2 :]:
            stack[steps:] = 0


class PlannedCond(RunsPlans):
    """One of two plans, each bound when it is asked for."""

    def bind(self, run: RunContext, operands: Sequence[Array], out: Any, attrs: Any) -> KernelCall:
        """Neither of them yet."""
        return self.repeat, (run, [_Later(run, plan) for plan in self.plans], operands, out, attrs)

    def repeat(
        self, run: RunContext, bodies: Sequence[RunPlan], operands: Sequence[Array], out: Any, attrs: Any
    ) -> None:
        """The one that the first operand asks for."""
        predicate, *given = operands
        then, otherwise = bodies
        _run_once(run, then if bool(predicate) else otherwise, given, out)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the dearer."""
        return max(LEAST_STEP_FLOPS, *[plan.flops for plan in self.plans])


class PlannedCall(RunsPlans):
    """A body that is kept to itself, so that nothing inside lives on."""


class _Later:
    """A plan that is bound at its first run."""

    def __init__(self, run: RunContext, plan: Plan) -> None:
        self._run, self._plan = run, plan
        self._bound: RunPlan | None = None

    def __call__(self, feeds: Mapping[Any, Array], deadline: Deadline) -> Sequence[Array]:
        if self._bound is None:
            self._bound = self._run.bind_plan(self._plan)
        return self._bound(feeds, deadline)


def _run_once(run: RunContext, body: RunPlan, operands: Sequence[Array], out: Sequence[Array]) -> None:
    for result, value in zip(out, body(dict(enumerate(operands)), run.deadline), strict=True):
        result[...] = value
