"""Control flow in plans: kernels that run planned bodies, and bodies of scans that compile to one recurrence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple

from engine.autodiff.bodies import derived, tidy
from engine.autodiff.control_flow import LEAST_STEP_FLOPS, Parts, RunsFunctions, emit_scan, in_parts, scan_attributes
from engine.codegen.functions.expansions import expand_functions, reports_range
from engine.codegen.kernels.program import REDUCTIONS, Instruction, KernelOperand, KernelResult, Level, Space
from engine.codegen.kernels.recurrence import Carry, Recurrence
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import Plan, Step
from engine.ir.attributes import keyed
from engine.ir.graph import Builder, Graph, Node, Value
from engine.ir.op import Array, Kernel, KernelCall, ResultTypes
from engine.ir.program import Body, Program
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Deadline, Limits, RunContext, RunPlan
from engine.ir.tensor_type import DTYPES, INTEGERS, TensorType, real_dtype
from engine.ops.common.batching import bundled
from engine.ops.elementwise.base import Elementwise, scalars_of
from engine.ops.index.slice import cut

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


# Rewrites of loops before they are planned: hoisted invariants, merged and segmented loops, and lowering.
#
# Loop-invariant code motion: nodes of a body that depend on consts alone are computed once, in front of the loop.

#: bytes of a value in front of a loop that are worth nothing, where it is larger than what it is made of
_SMALL: Final = 1 << 12


def hoist(graph: Graph) -> Graph:
    """Make loop invariants consts of their loops. They have the same bits, and are computed once."""
    if not any(isinstance(node.op, RunsFunctions) and node.op.steps_body for node in graph.nodes):
        return graph
    return Builder(graph.registry, NO_LIMITS).rewrite(graph, _hoisted)


def _hoisted(node: Node, operands: Sequence[Value]) -> Value | None:
    """Move loop invariants in front of a loop; return None if it has none, or `node` is no loop."""
    if not isinstance(node.op, RunsFunctions) or not node.op.steps_body:
        return None
    body: Body = node.attrs["body"]
    consts = node.op.consts(len(operands), **node.attrs)
    moved = frontier(body, consts, is_run=node.op.name == "scan" and node.attrs["length"] > 0)
    if not moved:
        return None
    graph = tidy(body).graph
    front = body.made(
        ("front", consts, moved), lambda: derived(body, graph.rewritten(graph.nodes, moved), body.inputs[:consts])
    )
    hoisted = front.inline_into(operands[0].builder, operands[:consts])
    attrs = dict(node.attrs)
    for name, value in node.attrs.items():
        if isinstance(value, Body):
            key = "with more", body.digest, consts, moved
            attrs[name] = value.made(key, partial(_widened, value, body, consts, moved))
    return operands[0].builder.emit(node.op, [*operands[:consts], *hoisted, *operands[consts:]], attrs)


def frontier(body: Body, consts: int, *, is_run: bool) -> tuple[int, ...]:
    """Find nodes of the (tidy) body that depend on the consts alone, and are read by others or are results.

    Unless a step surely `is_run`, nodes that may raise an error are left out.
    """
    return body.made(("frontier", consts, is_run), lambda: _frontier(tidy(body).graph, consts, is_run=is_run))


def _frontier(graph: Graph, consts: int, *, is_run: bool) -> tuple[int, ...]:
    fixed, moved = set[int](), set[int]()
    for i, node in enumerate(graph.nodes):
        if node.is_leaf:
            is_fixed = node.attrs["feed"] < consts
        else:
            is_fixed = bool(node.operands) and fixed.issuperset(node.operands) and _is_worth(graph, node)
            is_fixed = is_fixed and (is_run or not _may_refuse(graph, node))
        if is_fixed:
            fixed.add(i)
    read = {*graph.outputs, *[o for i, node in enumerate(graph.nodes) if i not in fixed for o in node.operands]}
    moved = {i for i in fixed & read if not graph.nodes[i].is_leaf and not graph.nodes[i].op.several}
    return tuple(sorted(moved))


def _is_worth(graph: Graph, node: Node) -> bool:
    """Whether it is no larger than what it is made of, or small; several results are kept together, inside."""
    if node.op.several or node.op.name == "get_output":
        return False
    made_of = sum(graph.nodes[i].type.nbytes for i in node.operands)
    return node.type.nbytes <= max(made_of, _SMALL)


def _may_refuse(graph: Graph, node: Node) -> bool:
    """Whether it may find an index that is outside its axis."""
    if node.op.is_view or isinstance(node.op, Elementwise):
        return False
    return any(graph.nodes[i].type.dtype.name in INTEGERS for i in node.operands)


def _widened(function: Body, body: Body, consts: int, moved: tuple[int, ...]) -> Body:
    """Add nodes of `body` to the consts of a function of its loop, which may be the body itself."""
    graph = tidy(function).graph
    more = dict(zip(moved, range(consts, consts + len(moved)), strict=True)) if function == body else {}
    types = [tidy(body).graph.nodes[i].type for i in moved]
    inputs = [*function.inputs[:consts], *types, *function.inputs[consts:]]
    builder = function.budget.builder(graph.registry)
    values: list[Value] = []
    for i, node in enumerate(graph.nodes):
        if node.is_leaf:
            feed = node.attrs["feed"]
            values.append(builder.leaf(node.type, feed if feed < consts else feed + len(moved)))
        elif i in more:
            values.append(builder.leaf(node.type, more[i]))
        else:
            values.append(builder.copy(node, [values[o] for o in node.operands]))
    return derived(function, builder.graph([values[o] for o in graph.outputs]), inputs)


# Loop merging: loops through the same steps become one. Rules write a loop again to have more of each step.


class _Joint(NamedTuple):
    """A body with the results of several, and for each of these the positions of its results among the joint ones."""

    body: Body
    where: Sequence[Sequence[int]]


def merge(graph: Graph) -> Graph:
    """Merge loops over the same operands whose carries are the same: one loop has the stacks of all."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for i, node in enumerate(graph.nodes):
        if isinstance(node.op, RunsFunctions) and node.op.steps_body:
            but_body = keyed({name: value for name, value in node.attrs.items() if name != "body"})
            groups[node.op.family, node.operands, but_body].append(i)
    joints: list[tuple[Sequence[int], _Joint]] = []
    for group in groups.values():
        if len(group) > 1:
            bodies: list[Body] = [graph.nodes[i].attrs["body"] for i in group]
            key = "joint", *[body.digest for body in bodies]
            joint = bodies[0].made(key, partial(_joined, bodies, graph.nodes[group[0]].attrs["carries"]))
            if joint is not None:
                joints.append((group, joint))
    return _merged(graph, joints) if joints else graph


def _joined(bodies: Sequence[Body], carries: int) -> _Joint | None:
    """Join the bodies of a group; return None if their carries differ."""
    first = bodies[0]
    builder = first.budget.builder(first.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(first.inputs)]
    results = [tidy(body).inline_into(builder, leaves) for body in bodies]
    graph = derived(first, builder.graph([x for given in results for x in given]), first.inputs).graph
    outputs, start = [], 0
    for given in results:
        outputs.append(graph.outputs[start : start + len(given)])
        start += len(given)
    moving = outputs[0][:carries]
    if any(given[:carries] != moving for given in outputs):
        return None
    stacks = [*dict.fromkeys(i for given in outputs for i in given[carries:])]
    body = derived(first, graph.rewritten(graph.nodes, [*moving, *stacks]), first.inputs)
    where = [[*range(carries), *[carries + stacks.index(i) for i in given[carries:]]] for given in outputs]
    return _Joint(body, where)


def _merged(graph: Graph, joints: Sequence[tuple[Sequence[int], _Joint]]) -> Graph:
    builder = Builder(graph.registry, NO_LIMITS)
    instead = {i: (group[0], joint, n) for group, joint in joints for n, i in enumerate(group)}
    values: list[Value] = []
    for i, node in enumerate(graph.nodes):
        operands = [values[o] for o in node.operands]
        builder.origin = node.origin
        if i in instead:
            first, joint, _ = instead[i]
            assert isinstance(node.op, RunsFunctions)
            attrs = {**node.attrs, "body": joint.body}
            values.append(node.op.emit_loop(operands, attrs) if first == i else values[first])
        elif node.op.name == "get_output" and node.operands[0] in instead:
            values.append(operands[0].output(_place(graph, node, *instead[node.operands[0]][1:])))
        else:
            values.append(builder.copy(node, operands))
    return builder.graph([values[o] for o in graph.outputs])


def _place(graph: Graph, node: Node, joint: _Joint, n: int) -> int:
    """Return the index of a result of the merged loop. Results beside carries and stacks keep theirs."""
    loop = graph.nodes[node.operands[0]]
    assert isinstance(loop.op, RunsFunctions)
    index: int = node.attrs["index"]
    carries: int = loop.attrs["carries"]
    beside = loop.op.beside
    if carries <= index < carries + beside:
        return index
    past = beside if index >= carries else 0
    return joint.where[n][index - past] + past


# Loops in segments: a scan of scans. Their backward pass keeps the carries between segments alone.
#
# Those within a segment are recomputed when the backward pass comes to it. n steps in segments of √n so need memory for
# 2√n carries, and in segments of segments for 3 ∛n, for one more pass over the steps each (A. Griewank, "Achieving
# logarithmic growth of temporal and spatial complexity in reverse automatic differentiation"). A `while` stays whole:
# no plan knows how many steps it takes.

#: steps from which a loop is worth segments
_MANY: Final = 16
#: segments that divide the steps are taken, where they are so much longer or shorter at most, or by so many steps
_NEAR: Final = 2
_TRIED: Final = 10_000


def nest(graph: Graph, levels: int, limits: Limits, deadline: Deadline = NO_DEADLINE) -> Graph:
    """Cut long scans into segments, and these into segments, as many `levels` as are asked for, with the same bits."""
    if not levels or not any(_is_long(node) for node in graph.nodes):
        return graph
    builder = Builder(graph.registry, limits, deadline)

    def in_segments(node: Node, operands: Sequence[Value]) -> Value | None:
        return bundled(builder, _nested(operands, levels, **node.attrs)) if _is_long(node) else None

    return builder.rewrite(graph, in_segments)


def has_scans(program: Program) -> bool:
    """Whether there may be anything to nest in a program."""
    written = chain(program.statements, *[function.statements for function in program.functions])
    return any(statement.op.name == "scan" for statement in written)


def _is_long(node: Node) -> bool:
    return node.op.name == "scan" and node.attrs["length"] >= _MANY and bool(node.attrs["carries"])


def _nested(
    operands: Sequence[Value], levels: int, *, body: Body, carries: int, sequences: int, length: int, reverse: bool
) -> list[Value]:
    """Emit a scan in segments, and the steps that are left over, at the end of the loop, as a scan of its own."""
    parts = in_parts(operands, carries, sequences)
    steps = _steps(length, levels)
    whole = length // steps * steps
    through = [x if whole == length else cut(x, 0, 0, whole) for x in parts.sequences]
    rest = [cut(x, 0, whole, length) for x in parts.sequences] if whole < length else []
    both = (Parts((), (), through), whole), (Parts((), (), rest), length - whole)
    state, stacks = list(parts.carries), dict[int, list[Value]]()
    for place in (1, 0) if reverse else (0, 1):
        given, count = both[place]
        if count:
            one = Parts(parts.consts, state, given.sequences)
            if place == 0:
                results = _in_segments(body, one, count, steps, levels, reverse=reverse)
            else:
                results = emit_scan(operands[0].builder, body, one, count, reverse=reverse)
            state, stacks[place] = results[:carries], results[carries:]
    joined = zip(*[stacks[place] for place in sorted(stacks)], strict=True)
    return [*state, *[first.cat(*others, axis=0) if others else first for first, *others in joined]]


def _in_segments(body: Body, parts: Parts, length: int, steps: int, levels: int, *, reverse: bool) -> list[Value]:
    count = length // steps
    through = [x.reshape(shape=(count, steps, *x.shape[1:])) for x in parts.sequences]
    segment = _segment(body, len(parts.consts), len(parts.carries), steps, levels, reverse=reverse)
    carries, joined = len(parts.carries), Parts(parts.consts, parts.carries, through)
    results = emit_scan(parts.carries[0].builder, segment, joined, count, reverse=reverse)
    return [*results[:carries], *[x.reshape(shape=(length, *x.shape[2:])) for x in results[carries:]]]


def _segment(body: Body, consts: int, carries: int, steps: int, levels: int, *, reverse: bool) -> Body:
    """Write the body whose step goes through one segment of each sequence."""

    def make() -> Body:
        slices = [type.with_shape((steps, *type.shape)) for type in body.inputs[consts + carries :]]
        types: list[TensorType] = [*body.inputs[: consts + carries], *slices]
        builder = body.budget.builder(body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
        parts = in_parts(leaves, carries, len(slices))
        if levels > 1 and steps >= _MANY:
            results = _nested(leaves, levels - 1, **scan_attributes(body, parts, steps, reverse=reverse))
        else:
            results = emit_scan(builder, body, parts, steps, reverse=reverse)
        return derived(body, builder.graph(results), types)

    return body.made(("segment", consts, carries, steps, levels, reverse), make)


def _steps(length: int, levels: int) -> int:
    """Choose the steps of one segment, so that all levels have about as many: a divisor, if one is near."""
    wanted: int = round(length ** (levels / (levels + 1)))
    least, most = max(2, wanted // _NEAR), wanted * _NEAR
    outwards = (k for away in range(_TRIED) for k in (wanted - away, wanted + away) if least <= k <= most)
    return next((k for k in outwards if length % k == 0), wanted)


# Lowering of ops that run functions to those that an executor runs, once nothing is differentiated any more.


def lower(graph: Graph, limits: Limits, deadline: Deadline = NO_DEADLINE) -> Graph:
    """Write calls out, and maps and fixed points as loops; also those in what that writes. Raises OverBudget."""

    def lowered(node: Node, operands: Sequence[Value]) -> Value | None:
        return node.op.lowered(*operands, **node.attrs) if isinstance(node.op, RunsFunctions) else None

    while any(isinstance(node.op, RunsFunctions) for node in graph.nodes):
        written = Builder(graph.registry, limits, deadline).rewrite(graph, lowered)
        if written is graph:
            break
        graph = written
    return graph
