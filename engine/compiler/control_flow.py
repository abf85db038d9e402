"""Control flow in plans: kernels that run planned bodies, and rewrites of loops before they are planned.

In the order in which a graph goes through them: `nest` cuts long scans into segments, before differentiation; `lower`
writes calls, maps and fixed points as simpler nodes; `merge` joins loops through the same steps; `hoist` moves loop
invariants in front of a loop; and planning replaces each op by a `RunsPlans` kernel. If the compiled body of a scan is
a single small kernel, `step_loop` turns it into a recurrence, so that machine code runs all steps in one call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple

from engine.autodiff.bodies import derive_body, tidy
from engine.autodiff.control_flow import (
    LEAST_STEP_FLOPS,
    Parts,
    RunsFunctions,
    emit_scan,
    scan_attributes,
    split_operands,
)
from engine.codegen.functions.expansions import expand_functions, reports_range
from engine.codegen.kernels.program import REDUCTIONS, Instruction, KernelOperand, KernelResult, Level, Space
from engine.codegen.kernels.recurrence import Carry, Recurrence
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import Plan, Step
from engine.ir.attributes import make_attributes_key
from engine.ir.graph import Builder, Graph, Node, Value
from engine.ir.op import Array, Kernel, KernelCall, ResultTypes
from engine.ir.program import Body, Program
from engine.ir.run_context import NO_DEADLINE, NO_LIMITS, Deadline, Limits, RunContext, RunPlan
from engine.ir.tensor_type import DTYPES, INTEGERS, TensorType, real_dtype
from engine.ops.common.batching import pack
from engine.ops.elementwise.base import Elementwise, scalar_type
from engine.ops.index.slice import slice_axis

#: bound plans of an op's bodies
Bodies = Sequence[RunPlan]
#: maximum elements of a step that one kernel runs all steps of; it writes stacks with large strides if there are more
MOST_STEP_ELEMENTS: Final = 4096


@dataclass(frozen=True, eq=False)
class StepLoop:
    """The body of a scan as a recurrence over a space, and for each operand the body's input that it is."""

    recurrence: Recurrence
    space: Space
    inputs: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements of a step."""
        return self.space.length

    @property
    def reports_range(self) -> bool:
        """Whether its kernel reports steps with arguments out of range."""
        return reports_range(self.recurrence.fused)

    def entries(self, operands: Sequence[Array], results: Sequence[Array], carries: int, *, reverse: bool) -> list[int]:
        """Return the elements between entries of consecutive steps, for each operand and result of the recurrence."""
        step = -1 if reverse else 1
        moving = [
            step * operands[feed][:1].size if n in self.recurrence.moving else 0 for n, feed in enumerate(self.inputs)
        ]
        return [*moving, *[step * array[:1].size if k >= carries else 0 for k, array in enumerate(results)]]

    @cached_property
    def expanded(self) -> Recurrence:
        """The recurrence as it is compiled, with functions expanded to arithmetic."""
        return self.recurrence.with_expansion(expand_functions(self.recurrence.fused))


def step_loop(body: Plan, consts: int, carries: int) -> StepLoop | None:
    """Convert the body of a scan, with inputs consts, carries and entries in this order, to one recurrence.

    Return None if the body is more than one kernel, reduces rows, or has too many elements.
    """
    kernel_step = _single_kernel(body)
    if kernel_step is None:
        return None
    writer = _RecurrenceWriter(body, kernel_step)
    results = [writer.result(k) for k in range(len(body.results))]
    if None in results or not writer.is_of_elements(consts, carries):
        return None
    return writer.step_loop([value for value in results if value is not None], consts, carries)


def _single_kernel(body: Plan) -> Step | None:
    """Return the only kernel of a body, if it computes few elements, one by one."""
    # `get_output` steps are views of the kernel's results, and cost nothing.
    kernel_steps = [step for step in body.steps if step.op.name != "get_output"]
    op = kernel_steps[0].op if len(kernel_steps) == 1 else None
    if not isinstance(op, Fused) or op.iteration_space.length > MOST_STEP_ELEMENTS:
        return None
    is_elementwise = all(result.kind == "element" for result in op.kernel.results) and not any(
        instruction.op in REDUCTIONS for instruction in op.kernel.instructions
    )
    return kernel_steps[0] if is_elementwise else None


class _RecurrenceWriter:
    """Writer of a body's kernel as one whose results are those of the body."""

    def __init__(self, body: Plan, step: Step) -> None:
        assert isinstance(step.op, Fused)
        self._body, self._kernel, space = body, step.op.kernel, step.op.iteration_space
        self._space, self._type = space, step.types[0]
        # Bodies have their inputs as feeds, by number.
        self._inputs: dict[int, Any] = {slot: feed for feed, slot in body.feeds.items()}
        self._computed: dict[int, int] = {
            view.result: self._kernel.results[view.attrs["index"]].value for view in body.steps if view is not step
        }
        self._operands = [*self._kernel.operands]
        self._strides = [*space.strides[: len(self._operands)]]
        self._element = space.strides[len(self._operands)]
        self._instructions = [*self._kernel.instructions]
        #: the body's input that each operand is; None for an operand that is not an input
        self._operand_inputs = [self._inputs.get(slot) for slot in step.operands]

    def result(self, k: int) -> int | None:
        """Return the number of the scalar that is the k-th result of the body, or None if there is none."""
        slot = self._body.results[k]
        if slot in self._computed:
            return self._computed[slot]
        return self._load_input(self._inputs[slot], self._body.result_types[k]) if slot in self._inputs else None

    def _load_input(self, feed: int, type: TensorType) -> int | None:
        """Return the scalar of an input that the body returns unchanged. Load it if the kernel did not read it."""
        if feed not in self._operand_inputs:
            if type.shape != self._type.shape or real_dtype(type.dtype).name not in (self._kernel.dtype, "bool"):
                return None
            kind = scalar_type(type.dtype)
            self._instructions.append(Instruction("load", (), len(self._operands), kind, Level.ELEMENT))
            self._operands.append(KernelOperand(Level.ELEMENT, kind))
            self._strides.append(self._element)
            self._operand_inputs.append(feed)
        operand = self._operand_inputs.index(feed)
        loads = (
            i
            for i, instruction in enumerate(self._instructions)
            if instruction.op == "load" and instruction.data == operand
        )
        return next(loads) if self._operands[operand].level == Level.ELEMENT else None

    def is_of_elements(self, consts: int, carries: int) -> bool:
        """Whether operands are distinct inputs and carries have a value per element, as steps must not mix elements."""
        if None in self._operand_inputs or len({*self._operand_inputs}) < len(self._operand_inputs):
            return False
        carry_inputs = range(consts, consts + carries)
        return all(
            operand.level == Level.ELEMENT and strides == self._element
            for feed, operand, strides in zip(self._operand_inputs, self._operands, self._strides, strict=True)
            if feed in carry_inputs
        )

    def step_loop(self, results: Sequence[int], consts: int, carries: int) -> StepLoop:
        """Return the recurrence with these scalars as results."""
        fused = self._kernel._replace(
            operands=tuple(self._operands),
            instructions=tuple(self._instructions),
            results=tuple(KernelResult("element", value) for value in results),
        )
        inputs = [feed for feed in self._operand_inputs if feed is not None]
        carry_operands = tuple(Carry(inputs.index(consts + k), k) for k in range(carries) if consts + k in inputs)
        moving = tuple(n for n, feed in enumerate(inputs) if feed >= consts + carries)
        strides = (*self._strides, *[self._element] * len(results))
        return StepLoop(Recurrence(fused, carry_operands, moving), self._space._replace(strides=strides), tuple(inputs))


#: steps of body plans from which a loop waits for its kernels; uncompiled, they take about 0.2 s
_LONG: Final = 20_000


def has_long_loops(plan: Plan) -> bool:
    """Whether running the loops of a plan uncompiled may take longer than compiling them."""
    step_counts: dict[Plan, int] = {}
    return any(isinstance(step.op, RunsPlans) and _steps_within(step, step_counts) >= _LONG for step in plan.steps)


def _steps_within(step: Step, step_counts: dict[Plan, int]) -> int:
    """Count the steps of its bodies, for each run of a body. `step_counts` caches the counts of plans."""
    if not isinstance(step.op, RunsPlans):
        return 1
    for plan in step.op.plans:
        if plan not in step_counts:
            step_counts[plan] = sum(_steps_within(inner, step_counts) for inner in plan.steps)
    return int(step.op.most_steps(step.attrs)) * sum(step_counts[plan] for plan in step.op.plans)


@dataclass(frozen=True, eq=False)
class RunsPlans(Kernel):
    """Base of kernels that run `plans`, the bodies of a node of the op `source`. One is made for each node.

    The peaks of the bodies, without their feeds, count as workspace.
    """

    source: RunsFunctions
    plans: tuple[Plan, ...]

    operands = ("operands...?",)
    several = True
    internal = True
    dtypes = DTYPES
    is_captured = False

    def __post_init__(self) -> None:
        # Class attributes of other ops, so they cannot be fields of the dataclass.
        object.__setattr__(self, "attrs", self.source.attrs)
        object.__setattr__(self, "runs", tuple(dict.fromkeys(self.plans)))

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the source op."""
        return self.source.name

    def infer(self, *types: Any, **attrs: Any) -> ResultTypes:
        """Infer the types of the source op."""
        return self.source.infer(*types, **attrs)

    def forward(self, run: RunContext, *arrays: Array, out: Sequence[Array], **attrs: Any) -> None:
        """Bind the bodies and run them, once."""
        function, arguments = self.bind(run, arrays, out, attrs)
        function(*arguments)

    def bind(self, run: RunContext, operands: Sequence[Array], out: Any, attrs: Any) -> KernelCall:
        """Bind the bodies, each to memory of its own."""
        return self.repeat, (run, [run.bind_plan(plan) for plan in self.plans], operands, out, attrs)

    def repeat(self, run: RunContext, bodies: Bodies, operands: Sequence[Array], out: Any, attrs: Any) -> None:
        """Run the bodies. This base runs the first one, once."""
        _run_once(run, bodies[0], operands, out)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the maximum number of steps, each of which counts at least LEAST_STEP_FLOPS."""
        count: int = self.most_steps(attrs)
        return count * max(LEAST_STEP_FLOPS, sum(plan.flops for plan in self.plans))

    def most_steps(self, attrs: Any) -> int:
        """Upper bound of the number of steps."""
        return 1

    def step_number(self, k: int, operands: Sequence[Array], attrs: Any) -> int | None:
        """Return the number of the step that is the k-th run of a body, or None if there are no steps."""
        return None

    def workspace(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """Memory of the bodies, and a second copy of carries, as a step reads the old ones while it writes new ones."""
        carry_types = out[: attrs.get("carries", 0)] if isinstance(out, tuple) else ()
        # A step that returns a carry unchanged, in the memory of its feed, needs no second copy of it.
        borrowed = self.plans[-1].results_in_feeds
        carries: int = sum(type.nbytes for k, type in enumerate(carry_types) if k not in borrowed)
        body_bytes: int = sum(plan.working_bytes for plan in self.runs)
        return carries + body_bytes


@dataclass(frozen=True, eq=False)
class PlannedScan(RunsPlans):
    """A scan. `step_loop` is its body as a recurrence, if it is compiled and can be written as one."""

    step_loop: StepLoop | None = None

    #: numbers of the scan's results between carries and stacks, and of the body's results between carries and entries
    extra_results: ClassVar[int] = 0
    flag_results: ClassVar[int] = 0
    #: whether there may be fewer steps than entries in the stacks
    may_end_early: ClassVar[bool] = False

    def most_steps(self, attrs: Any) -> int:
        """Length of the scan."""
        return int(attrs["length"])

    def step_number(self, k: int, operands: Sequence[Array], attrs: Any) -> int | None:
        """Return the number of the entries that the k-th step reads."""
        return self.steps(operands, attrs) - 1 - k if attrs["reverse"] else k

    def steps(self, operands: Sequence[Array], attrs: Any) -> int:
        """Return the number of steps, which is the length."""
        return int(attrs["length"])

    def repeat(self, run: RunContext, bodies: Bodies, operands: Sequence[Array], out: Any, attrs: Any) -> None:
        """Run step by step."""
        _run_steps(run, bodies[0], operands, out, attrs, attrs["length"])


class PlannedCountedScan(PlannedScan):
    """A scan whose last operand is the number of steps. Further entries of the stacks are zero."""

    may_end_early = True

    def steps(self, operands: Sequence[Array], attrs: Any) -> int:
        """Return the count, at most the length."""
        return min(int(operands[-1]), int(attrs["length"]))

    def repeat(self, run: RunContext, bodies: Bodies, operands: Sequence[Array], out: Any, attrs: Any) -> None:
        """Run that many steps, and fill the rest of the stacks with zeros."""
        length = self.steps(operands, attrs)
        _run_steps(run, bodies[0], operands[:-1], out, attrs, length)
        for stack in out[attrs["carries"] :]:
            stack[length:] = 0


def _run_steps(run: RunContext, body: RunPlan, operands: Sequence[Array], out: Any, attrs: Any, length: int) -> None:
    consts, state, sequences = split_operands(operands, attrs["carries"], attrs["sequences"])
    carries = len(state)
    steps: Iterable[int] = range(length - 1, -1, -1) if attrs["reverse"] else range(length)
    for t in steps:
        feeds: dict[Hashable, Array] = dict(enumerate([*consts, *state, *[x[t, ...] for x in sequences]]))
        state = _stack_results(body(feeds, run.deadline), carries, out[carries:], t)
    # The carries of the last step lie in the memory of the body, which the next run overwrites.
    for last, value in zip(out, state, strict=False):
        last[...] = value


def _stack_results(results: Sequence[Array], carries: int, stacks: Sequence[Array], t: int) -> Sequence[Array]:
    """Return the carries of a step. Copy its other results to entry t of the stacks, to free their memory."""
    for stack, entry in zip(stacks, results[carries:], strict=True):
        stack[t, ...] = entry
    return results[:carries]


class PlannedWhile(RunsPlans):
    """A loop that runs while its condition holds: plans of the condition, and of a step with the next condition.

    Among the results of a step, the flag follows the carries. The loop has `steps` and `finished` in that place.
    """

    extra_results: ClassVar[int] = 2
    flag_results: ClassVar[int] = 1
    may_end_early: ClassVar[bool] = True

    def most_steps(self, attrs: Any) -> int:
        """Bound of the loop."""
        return int(attrs["max_steps"])

    def step_number(self, k: int, operands: Sequence[Array], attrs: Any) -> int | None:
        """Return the number of steps before the k-th one."""
        return k

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the condition and of the maximum number of steps."""
        condition, step = self.plans
        return condition.flops + self.most_steps(attrs) * max(LEAST_STEP_FLOPS, step.flops)

    def repeat(self, run: RunContext, bodies: Bodies, operands: Sequence[Array], out: Any, attrs: Any) -> None:
        """Run step by step."""
        condition, step = bodies
        consts, state, _ = split_operands(operands, attrs["carries"])
        carries, steps = len(state), 0
        (goes_on,) = condition(dict(enumerate(operands)), run.deadline)
        while steps < attrs["max_steps"] and bool(goes_on):
            feeds: dict[Hashable, Array] = dict(enumerate([*consts, *state]))
            # The step evaluates the condition for the next step, and returns it behind the carries.
            *state, goes_on = _stack_results(step(feeds, run.deadline), carries + 1, out[carries + 2 :], steps)
            steps += 1
        for last, value in zip(out, state, strict=False):
            last[...] = value
        out[carries][...] = steps
        out[carries + 1][...] = not bool(goes_on)
        for stack in out[carries + 2 :]:
            stack[steps:] = 0


class PlannedCond(RunsPlans):
    """A choice of two plans, each bound when it is first run."""

    def bind(self, run: RunContext, operands: Sequence[Array], out: Any, attrs: Any) -> KernelCall:
        """Return a call that binds a plan when it is chosen, to spare the memory of a branch that never runs."""
        return self.repeat, (run, [_LazyPlan(run, plan) for plan in self.plans], operands, out, attrs)

    def repeat(self, run: RunContext, bodies: Bodies, operands: Sequence[Array], out: Any, attrs: Any) -> None:
        """Run the plan that the first operand selects."""
        predicate, *branch_operands = operands
        then, otherwise = bodies
        _run_once(run, then if bool(predicate) else otherwise, branch_operands, out)

    def flops(self, out: ResultTypes, *types: Any, **attrs: Any) -> int:
        """FLOPs of the more expensive plan."""
        return max(LEAST_STEP_FLOPS, *[plan.flops for plan in self.plans])


class PlannedCall(RunsPlans):
    """A body with a plan of its own, so that its intermediate values do not outlive it."""


class _LazyPlan:
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


# Loop-invariant code motion: nodes of a body that depend on consts only are computed once, in front of the loop.

#: bytes up to which an invariant is hoisted even if it is larger than its operands
_SMALL: Final = 1 << 12


def hoist(graph: Graph) -> Graph:
    """Move loop invariants in front of their loops, with the same bits, and pass them in as consts."""
    if not any(isinstance(node.op, RunsFunctions) and node.op.steps_body for node in graph.nodes):
        return graph
    return Builder(graph.registry, NO_LIMITS).rewrite(graph, _hoisted)


def _hoisted(node: Node, operands: Sequence[Value]) -> Value | None:
    """Hoist the invariants of a loop; return None if it has none, or if `node` is not a loop."""
    if not isinstance(node.op, RunsFunctions) or not node.op.steps_body:
        return None
    body: Body = node.attrs["body"]
    consts = node.op.consts(len(operands), **node.attrs)
    hoisted_nodes = frontier(body, consts, is_run=node.op.name == "scan" and node.attrs["length"] > 0)
    if not hoisted_nodes:
        return None
    graph = tidy(body).graph
    # Rewritten bodies are cached with the original ones, for other loops with the same body.
    invariants = body.cached(
        ("front", consts, hoisted_nodes),
        lambda: derive_body(body, graph.with_nodes(graph.nodes, hoisted_nodes), body.inputs[:consts]),
    )
    hoisted = invariants.inline_into(operands[0].builder, operands[:consts])
    attrs = dict(node.attrs)
    for name, value in node.attrs.items():
        if isinstance(value, Body):
            key = "with more", body.digest, consts, hoisted_nodes
            attrs[name] = value.cached(key, partial(_with_consts, value, body, consts, hoisted_nodes))
    return operands[0].builder.emit(node.op, [*operands[:consts], *hoisted, *operands[consts:]], attrs)


def frontier(body: Body, consts: int, *, is_run: bool) -> tuple[int, ...]:
    """Find nodes of the tidy body that depend on consts only, and that other nodes read or the body returns.

    Unless a step is known to run (`is_run`), nodes that may raise an error are excluded, as hoisting would always run
    them.
    """
    return body.cached(("frontier", consts, is_run), lambda: _frontier(tidy(body).graph, consts, is_run=is_run))


def _frontier(graph: Graph, consts: int, *, is_run: bool) -> tuple[int, ...]:
    invariant, hoisted_nodes = set[int](), set[int]()
    for i, node in enumerate(graph.nodes):
        if node.is_leaf:
            is_invariant = node.attrs["feed"] < consts
        else:
            is_invariant = (
                bool(node.operands) and invariant.issuperset(node.operands) and _is_worth_hoisting(graph, node)
            )
            is_invariant = is_invariant and (is_run or not _may_raise(graph, node))
        if is_invariant:
            invariant.add(i)
    outputs_and_reads = {
        *graph.outputs,
        *[o for i, node in enumerate(graph.nodes) if i not in invariant for o in node.operands],
    }
    hoisted_nodes = {
        i for i in invariant & outputs_and_reads if not graph.nodes[i].is_leaf and not graph.nodes[i].op.several
    }
    return tuple(sorted(hoisted_nodes))


def _is_worth_hoisting(graph: Graph, node: Node) -> bool:
    """Whether a value is small or no larger than its operands, since it will live as long as the loop."""
    if node.op.several or node.op.name == "get_output":
        return False
    operand_bytes = sum(graph.nodes[i].type.nbytes for i in node.operands)
    return node.type.nbytes <= max(operand_bytes, _SMALL)


def _may_raise(graph: Graph, node: Node) -> bool:
    """Whether a node may find an index out of bounds."""
    if node.op.is_view or isinstance(node.op, Elementwise):
        return False
    return any(graph.nodes[i].type.dtype.name in INTEGERS for i in node.operands)


def _with_consts(function: Body, body: Body, consts: int, hoisted_nodes: tuple[int, ...]) -> Body:
    """Add nodes of `body` as consts to a function of its loop, which may be the body itself."""
    graph = tidy(function).graph
    const_of_node = (
        dict(zip(hoisted_nodes, range(consts, consts + len(hoisted_nodes)), strict=True)) if function == body else {}
    )
    types = [tidy(body).graph.nodes[i].type for i in hoisted_nodes]
    inputs = [*function.inputs[:consts], *types, *function.inputs[consts:]]
    builder = function.budget.builder(graph.registry)
    values: list[Value] = []
    for i, node in enumerate(graph.nodes):
        if node.is_leaf:
            feed = node.attrs["feed"]
            values.append(builder.leaf(node.type, feed if feed < consts else feed + len(hoisted_nodes)))
        elif i in const_of_node:
            values.append(builder.leaf(node.type, const_of_node[i]))
        else:
            values.append(builder.copy(node, [values[o] for o in node.operands]))
    return derive_body(function, builder.graph([values[o] for o in graph.outputs]), inputs)


# Loop merging: loops through the same steps become one. Derivative rules write such loops, which repeat a loop of the
# graph to get further values of each step.


class _Joint(NamedTuple):
    """A body with the results of several bodies, and the indices of each body's results among them."""

    body: Body
    indices: Sequence[Sequence[int]]


def merge(graph: Graph) -> Graph:
    """Merge loops with the same operands and carries into one loop with the stacks of all."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for i, node in enumerate(graph.nodes):
        if isinstance(node.op, RunsFunctions) and node.op.steps_body:
            other_attrs = make_attributes_key({name: value for name, value in node.attrs.items() if name != "body"})
            groups[node.op.family, node.operands, other_attrs].append(i)
    joints: list[tuple[Sequence[int], _Joint]] = []
    for group in groups.values():
        if len(group) > 1:
            bodies: list[Body] = [graph.nodes[i].attrs["body"] for i in group]
            key = "joint", *[body.digest for body in bodies]
            joint = bodies[0].cached(key, partial(_joined, bodies, graph.nodes[group[0]].attrs["carries"]))
            if joint is not None:
                joints.append((group, joint))
    return _merged(graph, joints) if joints else graph


def _joined(bodies: Sequence[Body], carries: int) -> _Joint | None:
    """Join the bodies of a group of loops; return None if their carries differ."""
    first = bodies[0]
    builder = first.budget.builder(first.graph.registry)
    leaves = [builder.leaf(type, i) for i, type in enumerate(first.inputs)]
    results = [tidy(body).inline_into(builder, leaves) for body in bodies]
    graph = derive_body(first, builder.graph([x for body_results in results for x in body_results]), first.inputs).graph
    outputs, start = [], 0
    for body_results in results:
        outputs.append(graph.outputs[start : start + len(body_results)])
        start += len(body_results)
    carry_nodes = outputs[0][:carries]
    # `derive_body` has merged equal nodes, so equal carries are the same nodes.
    if any(body_results[:carries] != carry_nodes for body_results in outputs):
        return None
    stacks = [*dict.fromkeys(i for body_results in outputs for i in body_results[carries:])]
    body = derive_body(first, graph.with_nodes(graph.nodes, [*carry_nodes, *stacks]), first.inputs)
    indices = [
        [*range(carries), *[carries + stacks.index(i) for i in body_results[carries:]]] for body_results in outputs
    ]
    return _Joint(body, indices)


def _merged(graph: Graph, joints: Sequence[tuple[Sequence[int], _Joint]]) -> Graph:
    builder = Builder(graph.registry, NO_LIMITS)
    joint_of_node = {i: (group[0], joint, n) for group, joint in joints for n, i in enumerate(group)}
    values: list[Value] = []
    for i, node in enumerate(graph.nodes):
        operands = [values[o] for o in node.operands]
        builder.origin = node.origin
        if i in joint_of_node:
            first, joint, _ = joint_of_node[i]
            assert isinstance(node.op, RunsFunctions)
            attrs = {**node.attrs, "body": joint.body}
            values.append(node.op.emit_loop(builder, operands, attrs) if first == i else values[first])
        elif node.op.name == "get_output" and node.operands[0] in joint_of_node:
            values.append(operands[0].output(_merged_index(graph, node, *joint_of_node[node.operands[0]][1:])))
        else:
            values.append(builder.copy(node, operands))
    return builder.graph([values[o] for o in graph.outputs])


def _merged_index(graph: Graph, node: Node, joint: _Joint, n: int) -> int:
    """Return the index of a result in the merged loop. Results between carries and stacks keep theirs."""
    loop = graph.nodes[node.operands[0]]
    assert isinstance(loop.op, RunsFunctions)
    index: int = node.attrs["index"]
    carries: int = loop.attrs["carries"]
    extra_results = loop.op.extra_results
    if carries <= index < carries + extra_results:
        return index
    offset = extra_results if index >= carries else 0
    return joint.indices[n][index - offset] + offset


# Loops in segments: a scan of scans. The backward pass saves only the carries between segments.
#
# Carries within a segment are recomputed when the backward pass reaches it. So n steps in segments of √n need memory
# for 2√n carries, and in segments of segments for 3 ∛n, at the cost of one more pass over the steps per level
# (A. Griewank, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation").
# A `while` is not cut, since its number of steps is unknown when it is planned.

#: minimum steps of a loop that is cut into segments
_MANY: Final = 16
#: maximum ratio to, and difference from, the ideal segment length in the search for a divisor of the steps
_MAX_RATIO: Final = 2
_MAX_DISTANCE: Final = 10_000


def nest(graph: Graph, levels: int, limits: Limits, deadline: Deadline = NO_DEADLINE) -> Graph:
    """Cut long scans into segments, and these into segments again, to a depth of `levels`, with the same bits."""
    if not levels or not any(_is_long(node) for node in graph.nodes):
        return graph
    builder = Builder(graph.registry, limits, deadline)

    def in_segments(node: Node, operands: Sequence[Value]) -> Value | None:
        return pack(builder, _nested(operands, levels, **node.attrs)) if _is_long(node) else None

    return builder.rewrite(graph, in_segments)


def has_scans(program: Program) -> bool:
    """Whether a program has scans that may be cut into segments."""
    statements = chain(program.statements, *[function.statements for function in program.functions])
    return any(statement.op.name == "scan" for statement in statements)


def _is_long(node: Node) -> bool:
    return node.op.name == "scan" and node.attrs["length"] >= _MANY and bool(node.attrs["carries"])


def _nested(
    operands: Sequence[Value], levels: int, *, body: Body, carries: int, sequences: int, length: int, reverse: bool
) -> list[Value]:
    """Emit a scan in segments. If steps are left over at the end of the loop, they form a scan of their own."""
    parts = split_operands(operands, carries, sequences)
    steps = _steps(length, levels)
    segmented_length = length // steps * steps
    segmented = [x if segmented_length == length else slice_axis(x, 0, 0, segmented_length) for x in parts.sequences]
    left_over = (
        [slice_axis(x, 0, segmented_length, length) for x in parts.sequences] if segmented_length < length else []
    )
    pieces = (Parts((), (), segmented), segmented_length), (Parts((), (), left_over), length - segmented_length)
    state, stacks = list(parts.carries), dict[int, list[Value]]()
    # A reverse scan begins with the last steps, which are those left over.
    for place in (1, 0) if reverse else (0, 1):
        piece, count = pieces[place]
        if count:
            piece_parts = Parts(parts.consts, state, piece.sequences)
            if place == 0:
                results = _in_segments(body, piece_parts, count, steps, levels, reverse=reverse)
            else:
                results = emit_scan(operands[0].builder, body, piece_parts, count, reverse=reverse)
            state, stacks[place] = results[:carries], results[carries:]
    stacks_in_order = zip(*[stacks[place] for place in sorted(stacks)], strict=True)
    return [*state, *[first.cat(*rest, axis=0) if rest else first for first, *rest in stacks_in_order]]


def _in_segments(body: Body, parts: Parts, length: int, steps: int, levels: int, *, reverse: bool) -> list[Value]:
    count = length // steps
    segmented = [x.reshape(shape=(count, steps, *x.shape[1:])) for x in parts.sequences]
    segment = _segment(body, len(parts.consts), len(parts.carries), steps, levels, reverse=reverse)
    carries, segment_parts = len(parts.carries), Parts(parts.consts, parts.carries, segmented)
    results = emit_scan(parts.carries[0].builder, segment, segment_parts, count, reverse=reverse)
    return [*results[:carries], *[x.reshape(shape=(length, *x.shape[2:])) for x in results[carries:]]]


def _segment(body: Body, consts: int, carries: int, steps: int, levels: int, *, reverse: bool) -> Body:
    """Write the body of the outer scan, which runs the steps of one segment."""

    def make() -> Body:
        slices = [type.with_shape((steps, *type.shape)) for type in body.inputs[consts + carries :]]
        types: list[TensorType] = [*body.inputs[: consts + carries], *slices]
        builder = body.budget.builder(body.graph.registry)
        leaves = [builder.leaf(type, i) for i, type in enumerate(types)]
        parts = split_operands(leaves, carries, len(slices))
        if levels > 1 and steps >= _MANY:
            results = _nested(leaves, levels - 1, **scan_attributes(body, parts, steps, reverse=reverse))
        else:
            results = emit_scan(builder, body, parts, steps, reverse=reverse)
        return derive_body(body, builder.graph(results), types)

    return body.cached(("segment", consts, carries, steps, levels, reverse), make)


def _steps(length: int, levels: int) -> int:
    """Choose the steps per segment so that all levels have similar numbers: a divisor of the length if one is close."""
    # With k levels of segments, each of the k + 1 nested scans ideally has length^(1 / (k + 1)) steps.
    ideal: int = round(length ** (levels / (levels + 1)))
    shortest, longest = max(2, ideal // _MAX_RATIO), ideal * _MAX_RATIO
    candidates = (
        k for delta in range(_MAX_DISTANCE) for k in (ideal - delta, ideal + delta) if shortest <= k <= longest
    )
    return next((k for k in candidates if length % k == 0), ideal)


# Lowering: after differentiation, replace ops that run functions by those that executors implement.


def lower(graph: Graph, limits: Limits, deadline: Deadline = NO_DEADLINE) -> Graph:
    """Inline calls, and write maps and fixed points as loops, until no such op is left. Raises OverBudget."""

    def lowered(node: Node, operands: Sequence[Value]) -> Value | None:
        return node.op.lowered(*operands, **node.attrs) if isinstance(node.op, RunsFunctions) else None

    while any(isinstance(node.op, RunsFunctions) for node in graph.nodes):
        rewritten = Builder(graph.registry, limits, deadline).rewrite(graph, lowered)
        if rewritten is graph:
            break
        graph = rewritten
    return graph
