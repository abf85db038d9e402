"""Control flow in plans: kernels that run planned bodies, and bodies of scans that compile to one recurrence."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

from engine.autodiff.control_flow import LEAST_STEP_FLOPS, RunsFunctions, in_parts
from engine.codegen.functions.expansions import expand_functions, reports_range
from engine.codegen.kernels.program import REDUCTIONS, Instruction, KernelOperand, KernelResult, Level, Space
from engine.codegen.kernels.recurrence import Carry, Recurrence
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import Plan, Step
from engine.ir.op import Array, Kernel, KernelCall, ResultTypes
from engine.ir.run_context import Deadline, RunContext, RunPlan
from engine.ir.tensor_type import DTYPES, TensorType, real_dtype
from engine.ops.elementwise.base import scalars_of

#: the bound plans of an op's bodies
Bodies = Sequence[RunPlan]
#: elements that a kernel goes through all steps of: of more, stacks would be written far apart
MOST_STEP_ELEMENTS: Final = 4096


@dataclass(frozen=True, eq=False)
class StepLoop:
    """The body of a scan as a recurrence over a space; for each operand, which input of the body it is."""

    recurrence: Recurrence
    space: Space
    inputs: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements of a step."""
        return self.space.length

    @property
    def reports_range(self) -> bool:
        """Whether its kernel tells that a step is out of range."""
        return reports_range(self.recurrence.loop)

    def entries(self, operands: Sequence[Array], results: Sequence[Array], carries: int, *, reverse: bool) -> list[int]:
        """Elements from one step to the next in the scan's operands and results that are those of the loop."""
        step = -1 if reverse else 1
        moving = [
            step * operands[fed][:1].size if n in self.recurrence.moving else 0 for n, fed in enumerate(self.inputs)
        ]
        return [*moving, *[step * array[:1].size if k >= carries else 0 for k, array in enumerate(results)]]

    @cached_property
    def expanded(self) -> Recurrence:
        """The recurrence as it is compiled, its functions written out."""
        return self.recurrence.ranged(expand_functions(self.recurrence.loop))


def step_loop(body: Plan, consts: int, carries: int) -> StepLoop | None:
    """Write the body of a scan, whose inputs are consts, then carries, then entries, as one loop over few elements.

    Returns None if the body is more than one kernel, or reduces rows, or has too many elements.
    """
    loop = _only_loop(body)
    if loop is None:
        return None
    writer = _Writer(body, loop)
    results = [writer.result(k) for k in range(len(body.results))]
    if None in results or not writer.is_of_elements(consts, carries):
        return None
    return writer.step_loop([value for value in results if value is not None], consts, carries)


def _only_loop(body: Plan) -> Step | None:
    """Return the only kernel of a body, if it computes few elements one by one."""
    loops = [step for step in body.steps if step.op.name != "get_output"]
    op = loops[0].op if len(loops) == 1 else None
    if not isinstance(op, Fused) or op.space.length > MOST_STEP_ELEMENTS:
        return None
    is_step = all(result.kind == "element" for result in op.loop.results) and not any(
        instruction.op in REDUCTIONS for instruction in op.loop.instructions
    )
    return loops[0] if is_step else None


class _Writer:
    """Writer of a body's loop as one whose results are those of the body."""

    def __init__(self, body: Plan, step: Step) -> None:
        assert isinstance(step.op, Fused)
        self._body, self._loop, space = body, step.op.loop, step.op.space
        self._space, self._type = space, step.types[0]
        # Those of bodies are fed by number.
        self._inputs: dict[int, Any] = {slot: feed for feed, slot in body.feeds.items()}
        self._computed: dict[int, int] = {
            view.result: self._loop.results[view.attrs["index"]].value for view in body.steps if view is not step
        }
        self._operands = [*self._loop.operands]
        self._strides = [*space.strides[: len(self._operands)]]
        self._element = space.strides[len(self._operands)]
        self._instructions = [*self._loop.instructions]
        #: of each operand, which input of the body it is; None: a value that is no input
        self._fed = [self._inputs.get(slot) for slot in step.operands]

    def result(self, k: int) -> int | None:
        """Return the number of the scalar that is a result of the body; None if there is none."""
        slot = self._body.results[k]
        if slot in self._computed:
            return self._computed[slot]
        return self._loaded(self._inputs[slot], self._body.result_types[k]) if slot in self._inputs else None

    def _loaded(self, fed: int, type: TensorType) -> int | None:
        """Load an input that is a result as it is, which the loop may not have read."""
        if fed not in self._fed:
            if type.shape != self._type.shape or real_dtype(type.dtype).name not in (self._loop.dtype, "bool"):
                return None
            kind = scalars_of(type.dtype)
            self._instructions.append(Instruction("load", (), len(self._operands), kind, Level.ELEMENT))
            self._operands.append(KernelOperand(Level.ELEMENT, kind))
            self._strides.append(self._element)
            self._fed.append(fed)
        operand = self._fed.index(fed)
        loads = (i for i, each in enumerate(self._instructions) if each.op == "load" and each.data == operand)
        return next(loads) if self._operands[operand].level == Level.ELEMENT else None

    def is_of_elements(self, consts: int, carries: int) -> bool:
        """Whether all operands are inputs, and carries one value an element. One is read twice where shapes differ."""
        if None in self._fed or len({*self._fed}) < len(self._fed):
            return False
        moved = range(consts, consts + carries)
        return all(
            operand.level == Level.ELEMENT and strides == self._element
            for fed, operand, strides in zip(self._fed, self._operands, self._strides, strict=True)
            if fed in moved
        )

    def step_loop(self, results: Sequence[int], consts: int, carries: int) -> StepLoop:
        """Return the loop with these scalars as results."""
        loop = self._loop._replace(
            operands=tuple(self._operands),
            instructions=tuple(self._instructions),
            results=tuple(KernelResult("element", value) for value in results),
        )
        inputs = [fed for fed in self._fed if fed is not None]
        carried = tuple(Carry(inputs.index(consts + k), k) for k in range(carries) if consts + k in inputs)
        moving = tuple(n for n, fed in enumerate(inputs) if fed >= consts + carries)
        strides = (*self._strides, *[self._element] * len(results))
        return StepLoop(Recurrence(loop, carried, moving), self._space._replace(strides=strides), tuple(inputs))


#: steps of bodies' plans, from which on a loop waits for its kernels: some 0.2 s without
_LONG: Final = 20_000


def has_long_loops(plan: Plan) -> bool:
    """Whether a plan may run more steps of bodies than are made in the time that it takes to compile them."""
    known: dict[Plan, int] = {}
    return any(isinstance(step.op, RunsPlans) and _steps_within(step, known) >= _LONG for step in plan.steps)


def _steps_within(step: Step, known: dict[Plan, int]) -> int:
    """Count the steps of its bodies, as often as they may run; `known` are the counts of plans that were visited."""
    if not isinstance(step.op, RunsPlans):
        return 1
    for plan in step.op.plans:
        if plan not in known:
            known[plan] = sum(_steps_within(inner, known) for inner in plan.steps)
    return int(step.op.most_steps(step.attrs)) * sum(known[plan] for plan in step.op.plans)


@dataclass(frozen=True, eq=False)
class RunsPlans(Kernel):
    """Base of kernels that run `plans`, the bodies of a node of the op `source`. One is made for each node.

    The peak of a body's plan counts as workspace, without the operands that the body reads.
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
        """Bind the bodies, each to memory of its own."""
        return self.repeat, (run, [run.bind_plan(plan) for plan in self.plans], operands, out, attrs)

    def repeat(self, run: RunContext, bodies: Bodies, operands: Sequence[Array], out: Any, attrs: Any) -> None:
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
        """Return the number of the step that is the k-th run of a body; None if it has no steps."""
        return None

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Memory that the bodies work in, and a second copy of carries."""
        moved = out[: attrs.get("carries", 0)] if isinstance(out, tuple) else ()
        passed_on = self.plans[-1].borrowed
        carries: int = sum(type.nbytes for k, type in enumerate(moved) if k not in passed_on)
        working: int = sum(plan.working_bytes for plan in self.runs)
        return carries + working


@dataclass(frozen=True, eq=False)
class PlannedScan(RunsPlans):
    """A scan; `step_loop` is its body as one loop, if it is to be compiled and is one."""

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

    def repeat(self, run: RunContext, bodies: Bodies, operands: Sequence[Array], out: Any, attrs: Any) -> None:
        """Step by step."""
        _go_through(run, bodies[0], operands, out, attrs, attrs["length"])


class PlannedCountedScan(PlannedScan):
    """A scan of as many steps as the last operand says; the rest of its stacks is zeros."""

    may_end_early = True

    def steps(self, operands: Sequence[Array], attrs: Any) -> int:
        """The count, at most its length."""
        return min(int(operands[-1]), int(attrs["length"]))

    def repeat(self, run: RunContext, bodies: Bodies, operands: Sequence[Array], out: Any, attrs: Any) -> None:
        """Run step by step, as many as there are."""
        length = self.steps(operands, attrs)
        _go_through(run, bodies[0], operands[:-1], out, attrs, length)
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


def _stacked(results: Sequence[Array], carries: int, stacks: Sequence[Array], t: int) -> Sequence[Array]:
    """Return the carries of a step; copy the other results to entry t of the stacks, so that their memory is free."""
    for stack, entry in zip(stacks, results[carries:], strict=True):
        stack[t, ...] = entry
    return results[:carries]


class PlannedWhile(RunsPlans):
    """A loop that runs while its condition holds: the plan of the condition, and of a step that evaluates it again.

    The step's flag stands between carries and stacks; in its place, the loop has `steps` and `finished`.
    """

    beside: ClassVar[int] = 2
    flags: ClassVar[int] = 1
    may_end_early: ClassVar[bool] = True

    def most_steps(self, attrs: Any) -> int:
        """The bound."""
        return int(attrs["max_steps"])

    def number_of(self, k: int, operands: Sequence[Array], attrs: Any) -> int | None:
        """Number of steps before it."""
        return k

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the condition, and of as many steps as there may be."""
        asked, step = self.plans
        return asked.flops + self.most_steps(attrs) * max(LEAST_STEP_FLOPS, step.flops)

    def repeat(self, run: RunContext, bodies: Bodies, operands: Sequence[Array], out: Any, attrs: Any) -> None:
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
        """Bind neither of them yet."""
        return self.repeat, (run, [_Later(run, plan) for plan in self.plans], operands, out, attrs)

    def repeat(self, run: RunContext, bodies: Bodies, operands: Sequence[Array], out: Any, attrs: Any) -> None:
        """Run the one that the first operand asks for."""
        predicate, *given = operands
        then, otherwise = bodies
        _run_once(run, then if bool(predicate) else otherwise, given, out)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the costlier one."""
        return max(LEAST_STEP_FLOPS, *[plan.flops for plan in self.plans])


class PlannedCall(RunsPlans):
    """A body with a plan of its own, so that no value inside outlives it."""


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
