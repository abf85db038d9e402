"""Native loops: a loop is one call of machine code, in which a runner makes the calls of a body again and again.

Where the tables of its calls point into what moves, an address changes from step to step: to the next entry of what is
gone through, or to the other of two buffers that a carry lies in. So the kernels of a body know nothing of the loop,
and a loop within a body is one more call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from engine.autodiff.control_flow import Parts, in_parts
from engine.codegen.kernels.compiled import block_count
from engine.codegen.kernels.recurrence import recurrence_layout, recurrence_table
from engine.codegen.native.native_call import (
    WATCHED,
    CarryEntry,
    InitEntry,
    LoopEntry,
    MoveEntry,
    NativeCall,
    NativeGuard,
    Runner,
    StackEntry,
    joined,
)
from engine.compiler.control_flow import PlannedCond, PlannedCountedScan, PlannedScan, PlannedWhile, RunsPlans, StepLoop
from engine.compiler.plan import Plan, Step
from engine.ir.op import Kernel, KernelCall
from engine.ir.run_context import ALIGNMENT, RunContext, aligned
from engine.ir.tensor_type import HostArray, TensorType
from engine.runtime.binding import Binder, StepKernel
from engine.runtime.memory_layout import BodyNeeds, NativeMemory, array_on, body_needs, memory_at
from engine.runtime.native_bodies import BoundBody, NotNative, Pointer, bind_body
from engine.runtime.prepared_plan import NativeStep, alone

#: positions that are read at each step, looked up once
_ENDED: Final = int(LoopEntry.ENDED)
_AT: Final = int(LoopEntry.AT)
_ASKS: Final = int(LoopEntry.ASKS)
_GOES_ON: Final = int(LoopEntry.GOES_ON)
#: position in a table of what lies nowhere
_NOWHERE: Final = -1
#: elements of a scalar that are computed in a nanosecond, about
_AT_ONCE: Final = 8
#: bytes that machine code may take beside what was planned for a loop
_BESIDE: Final = 1 << 16
#: nanoseconds of steps between two looks at the clock
_LOOK_NANOSECONDS: Final = 500_000


class ResumedLoop:
    """Rest of a loop that the runner has left before its end. A call makes the paused step, and lets the runner go on.

    If a kernel has met an argument out of its range, the loop runs once more from the beginning, step by step: its
    carries have moved, but the operands are still there, as no step writes to them.
    """

    def __init__(
        self,
        run: RunContext,
        step: Step,
        call: NativeCall,
        described: HostArray,
        bodies: Sequence[BoundBody],
        consts: Sequence[int],
    ) -> None:
        """`consts` are positions in the call's table, in which operands and then results begin at 1."""
        self._run, self._step, self._call, self._bodies, self._consts = run, step, call, bodies, consts
        self._words, self._table = described.data, call.entries[0].data
        self._pauses = bodies[-1].pauses, bodies[0].pauses
        arrays = [call.arrays[position] for position in range(1, len(self._table))]
        self._types = list(map(TensorType.of, arrays))

    def __call__(self) -> None:
        """Run to the end. Raises DeadlineExceeded, and what a step finds in its data, with its node."""
        try:
            for body in self._bodies:
                addresses = {feed: self._table[self._consts[feed]] for feed in body.consts}
                body.begin(self._run.deadline, addresses)
            self._go_on()
        finally:
            for body in self._bodies:
                body.end()

    def _go_on(self) -> None:
        words, check = self._words, self._run.deadline.check
        function, table = self._call.function, self._call.entries.ctypes.data
        while words[_ENDED]:
            at = words[_AT]
            if at < 0:
                raise self._run.watch.ended()
            paused = self._pauses[words[_ASKS]].get(at)
            if paused is None:
                self._run_again()
                return
            check()
            for step in paused:
                step()
            words[_GOES_ON] = 1
            function(0, 1, table)

    def _run_again(self) -> None:
        arrays = [
            array_on(type, memory_at(address, type.nbytes))
            for type, address in zip(self._types, self._table[1:], strict=True)
        ]
        operands = len(self._step.operands)
        function, arguments = self._step.op.bind(self._run, arrays[:operands], arrays[operands:], self._step.attrs)
        function(*arguments)


def bind_recurrence(
    kernel: StepKernel,
    loop: StepLoop,
    run: RunContext,
    step: Step,
    operands: Sequence[HostArray],
    out: Sequence[HostArray],
) -> tuple[BoundBody, int]:
    """Bind a recurrence as the body of a loop: one native call; and the address of the word that counts its steps.

    The runner leaves the loop at a step that is out of range.
    """
    attrs, layout = step.attrs, recurrence_layout(kernel.recurrence)
    entries = loop.entries(operands, out, attrs["carries"], reverse=attrs["reverse"])
    table = recurrence_table(kernel.recurrence, loop.space, 0, entries)[np.newaxis]
    far = np.zeros(1, np.int64)
    call = NativeCall(kernel.code.function, kernel.code.address, block_count(loop.space), table, (kernel, far))
    call.place(layout.flag, far.ctypes.data, far.nbytes)
    cost = len(kernel.recurrence.varying()) * max(1, loop.space.length // _AT_ONCE)
    steps = [NativeStep(call, cost), NativeStep(NativeGuard(far, joined(())), 0)]
    read = zip(loop.inputs, layout.loop.operands, layout.operands, strict=True)
    written = zip(out, layout.loop.results, layout.results, strict=True)
    body = BoundBody(
        steps=alone(steps if kernel.recurrence.out_of_range is not None else steps[:1]),
        pauses={},
        consts=(),
        fed={feed: _pointers(table[0], position, operands[feed], entry) for feed, position, entry in read},
        made=[_pointers(table[0], position, array, entry) for array, position, entry in written],
        results=(),
        nanoseconds=cost,
        run=run,
        kept=steps,
    )
    return body, table.ctypes.data + 8 * layout.steps


def _pointers(table: HostArray, position: int, array: HostArray, entry: int) -> list[Pointer]:
    """Find the word that points at an array, or at an entry of it, and the words of its bounds."""
    nbytes = array[:1].nbytes if table[entry] else array.nbytes
    bounds = zip(WATCHED.words(table, position), (0, nbytes), strict=False)
    return [Pointer(int(table.ctypes.data) + 8 * position, 0), *[Pointer(place, offset) for place, offset in bounds]]


class _Planned(NamedTuple):
    """Bytes of a loop as one call, and what was planned for it: bodies, whose memory stays, and bytes of carries."""

    call: int
    beside: int
    bodies: Sequence[Plan]
    carries: int


def loop_workspaces(binder: Binder, plan: Plan) -> dict[Kernel, int]:
    """Find the bytes that each loop of a plan, or `cond`, works in as one native call; 0 if it runs step by step.

    All loops together stay within the memory that was planned for them. Step by step, a loop takes less; those that
    would take the most go step by step first.
    """
    loops: dict[Kernel, _Planned] = {step.op: _planned(binder, step) for step in plan.steps if step.op.runs}
    if binder.runner is None or not loops:
        return dict.fromkeys(loops, 0)
    most = _bodies_bytes(loops.values()) + max(loop.carries for loop in loops.values()) + _BESIDE
    natively = sorted(loops, key=lambda op: loops[op].call + loops[op].beside)
    while natively and _together(loops, natively) > most:
        natively.pop()
    return {op: loop.call if op in natively else 0 for op, loop in loops.items()}


def _together(loops: Mapping[Kernel, _Planned], natively: Sequence[Kernel]) -> int:
    """Count the bytes of all loops. Those that are native calls run one at a time, in the same memory."""
    stepped = [loop for op, loop in loops.items() if op not in natively]
    called = [loops[op] for op in natively]
    return (
        max(loop.call for loop in called)
        + _bodies_bytes(stepped)
        + max([loop.carries for loop in stepped] + [loop.beside for loop in called])
    )


def _bodies_bytes(loops: Iterable[_Planned]) -> int:
    """Count the bytes that the bodies of loops work in, each body once."""
    return sum(body.working_bytes for body in {body for loop in loops for body in loop.bodies})


def _planned(binder: Binder, step: Step) -> _Planned:
    assert isinstance(step.op, RunsPlans)
    needs = _needs(binder, step)
    if isinstance(step.op, (PlannedScan, PlannedWhile)):  # carries lie in two buffers
        moved = step.op.plans[-1].result_types[: step.attrs["carries"]]
        call = sum(need.taken for need in needs) + 2 * sum(aligned(max(8, type.nbytes)) for type in moved)
    else:  # one of two bodies runs
        call = max(need.taken for need in needs)
    whole = step.op.workspace(step.types, **step.attrs)
    carries = whole - sum(body.working_bytes for body in step.op.runs)
    beside = max([need.beside for need in needs], default=0)
    return _Planned(ALIGNMENT + call, beside, step.op.runs, carries)


def _needs(binder: Binder, step: Step) -> Sequence[BodyNeeds]:
    """Find the needs of each body; of none if one kernel runs all steps."""
    assert isinstance(step.op, RunsPlans)
    if binder.step_kernel(step) is not None:
        return ()
    plans, consts = step.op.plans, len(_parts(step).consts)
    flags = [(0,), (step.attrs["carries"],)] if isinstance(step.op, PlannedWhile) else [()] * len(plans)
    return [body_needs(binder, plan, fixed, consts) for plan, fixed in zip(plans, flags, strict=True)]


def _parts(step: Step) -> Parts:
    """Find the positions of consts, carries and sequences in the table; in a `cond`, they follow the predicate."""
    positions = range(1, 1 + len(step.operands))
    if isinstance(step.op, (PlannedScan, PlannedWhile)):
        given = positions[:-1] if isinstance(step.op, PlannedCountedScan) else positions
        return in_parts(given, step.attrs["carries"], step.attrs.get("sequences", 0))
    return Parts(positions[1:] if isinstance(step.op, PlannedCond) else positions, (), ())


def bind_loop(
    binder: Binder, run: RunContext, step: Step, operands: Sequence[HostArray], out: Sequence[HostArray]
) -> Sequence[KernelCall] | None:
    """Bind a loop or `cond` as native calls; None if that cannot be done."""
    op, runner = step.op, binder.runner
    if runner is None or run.watch is None or not isinstance(op, RunsPlans) or not binder.workspace(step):
        return None
    if not all(x.flags.c_contiguous for x in operands):
        return None
    made: Sequence[_NativeBodies]
    if isinstance(op, (PlannedScan, PlannedWhile)):
        kind = _Loop if binder.step_kernel(step) is None else _GoneThrough
        made = [kind(binder, runner, run, step, operands, out)]
    else:
        branches = (0, 1) if isinstance(op, PlannedCond) else (None,)
        made = [_Once(binder, runner, run, step, operands, out, branch) for branch in branches]
    try:
        return [call for bodies in made for call in bodies.calls()]
    except NotNative:
        return None


class _NativeBodies(ABC):
    """Bodies as one call, whose table points at its description, then at operands, then at results.

    If these move, the table is updated; the call derives all other addresses from it when it begins.
    """

    def __init__(
        self,
        binder: Binder,
        runner: Runner,
        run: RunContext,
        step: Step,
        operands: Sequence[HostArray],
        out: Sequence[HostArray],
        branch: int | None = None,
    ) -> None:
        """`branch` is the number of a body in a `cond`, whose bodies work in the same memory."""
        assert isinstance(step.op, RunsPlans)
        self._op, self._attrs, self._step = step.op, step.attrs, step
        self._binder, self._runner, self._run = binder, runner, run
        self._operands, self._out = operands, out
        self._branch = branch
        self._memory = NativeMemory(run.workspace)
        self._parts = _parts(step)
        self._bodies: list[BoundBody] = []
        self._inits: list[tuple[int, int, int, int]] = []
        self._moves: list[tuple[int, int, int]] = []
        self._carries: list[tuple[int, int, int, int, int]] = []
        self._stacks: list[tuple[int, int, int]] = []
        self._described: HostArray = np.zeros(LoopEntry.SIZE, np.int64)
        for entry in LoopEntry.LENGTH_AT, LoopEntry.STEPS_AT, LoopEntry.FINISHED_AT, LoopEntry.WHEN_AT:
            self._described[entry] = _NOWHERE

    @property
    def _results(self) -> range:
        return range(1 + len(self._operands), 1 + len(self._operands) + len(self._out))

    def _bind(self, plan: Plan, fixed: Sequence[int] = ()) -> BoundBody:
        body = self._body(plan, fixed)
        for feed, position in enumerate(self._parts.consts):
            self._begin_at(body, feed, position)
        self._bodies.append(body)
        return body

    def _body(self, plan: Plan, fixed: Sequence[int]) -> BoundBody:
        consts = len(self._parts.consts)
        return bind_body(self._binder, self._runner, self._run, plan, self._memory, fixed, consts)

    def _begin_at(self, body: BoundBody, feed: int, position: int, last: int = 0, stride: int = 0) -> None:
        for word, offset in body.fed.get(feed, ()):
            self._inits.append((word, position, offset, last))
            if stride:
                self._moves.append((word, stride, 0))

    def _made(self, body: BoundBody, length: int) -> Sequence[KernelCall]:
        """Make the call, and a guard that goes on if it has not come to its end."""
        described = self._described
        lists = {
            LoopEntry.INITS: _rows(self._inits, InitEntry.SIZE),
            LoopEntry.MOVES: _rows(self._moves, MoveEntry.SIZE),
            LoopEntry.CARRIES: _rows(self._carries, CarryEntry.SIZE),
            LoopEntry.STACKS: _rows(self._stacks, StackEntry.SIZE),
            LoopEntry.STEPS: body.steps,
        }
        for entry, rows in lists.items():
            described[entry], described[entry + 1] = rows.ctypes.data, len(rows)
        described[LoopEntry.LENGTH] = length
        described[LoopEntry.WATCH], described[LoopEntry.POOL] = self._run.watch.address, self._runner.pool
        described[LoopEntry.LOOK_STEPS] = max(1, _LOOK_NANOSECONDS // max(1, body.nanoseconds))
        table = WATCHED.tables(1, self._results.stop)
        table[0, 0] = described.ctypes.data
        call = NativeCall(
            self._runner.repeat, self._runner.repeat_address, 1, table, (described, lists, self._bodies, self._memory)
        )
        for position, array in enumerate([*self._operands, *self._out], 1):
            call.point(position, array)
        ended = described[LoopEntry.ENDED : LoopEntry.ENDED + 1]
        left = ResumedLoop(self._run, self._step, call, described, self._bodies, self._parts.consts)
        return [(call, ()), (NativeGuard(ended, (left, ())), ())]

    @abstractmethod
    def calls(self) -> Sequence[KernelCall]:
        """Make the call, and its guard. Raises NotNative."""


class _Once(_NativeBodies):
    """A body that runs once; of a `cond`, one of two, which runs if the predicate says so."""

    def calls(self) -> Sequence[KernelCall]:
        body = self._bind(self._op.plans[self._branch or 0])
        for position, places in zip(self._results, body.made, strict=True):
            self._inits += [(word, position, offset, 0) for word, offset in places]
        if self._branch is not None:
            self._described[LoopEntry.WHEN_AT], self._described[LoopEntry.WHEN] = 1, 1 - self._branch
        return self._made(body, 1)


class _Loop(_NativeBodies):
    """A body that runs step by step."""

    def calls(self) -> Sequence[KernelCall]:
        assert isinstance(self._op, (PlannedScan, PlannedWhile))
        *asked, step = self._op.plans
        flag = (self._attrs["carries"],) if asked else ()
        bodies = [*[self._bind(plan, (0,)) for plan in asked], self._bind(step, flag)]
        parts, backwards = self._parts, bool(self._attrs.get("reverse"))
        self._carry(bodies, len(parts.consts), parts.carries)
        for feed, position in enumerate(parts.sequences, len(parts.consts) + len(parts.carries)):
            entry = self._operands[position - 1][:1].nbytes
            self._begin_at(bodies[-1], feed, position, entry if backwards else 0, -entry if backwards else entry)
        self._stack(self._op, bodies[-1], len(parts.carries))
        if isinstance(self._op, PlannedCountedScan):
            self._described[LoopEntry.LENGTH_AT] = len(self._operands)
        if isinstance(self._op, PlannedWhile):
            self._ask(bodies[0], bodies[-1], len(parts.carries))
        return self._made(bodies[-1], self._op.most_steps(self._attrs))

    def _carry(self, bodies: Sequence[BoundBody], consts: int, positions: Sequence[int]) -> None:
        body = bodies[-1]
        for k, position in enumerate(positions):
            array, feed = self._operands[position - 1], consts + k
            first, second = self._buffers(max(8, array.nbytes))
            self._carries.append((position, self._results[k], first, second, array.nbytes))
            for each in bodies:
                self._inits += [(word, _NOWHERE, first + offset, 0) for word, offset in each.fed.get(feed, ())]
            self._inits += [(word, _NOWHERE, second + offset, 0) for word, offset in body.made[k]]
            turned = [*body.fed.get(feed, ()), *body.made[k]]
            self._moves += [(word, 0, (first + offset) ^ (second + offset)) for word, offset in turned]

    def _buffers(self, nbytes: int) -> tuple[int, int]:
        """Take the two buffers between which a carry alternates."""
        first, second = (self._memory.take_bytes(nbytes).ctypes.data for _ in range(2))
        return first, second

    def _stack(self, op: PlannedScan | PlannedWhile, body: BoundBody, carries: int) -> None:
        """Advance stacks. They follow the carries; in a `while`, also steps and finished, and in its body, the flag."""
        backwards = bool(self._attrs.get("reverse"))
        first = carries + op.beside
        for k, array in enumerate(self._out[first:], first):
            entry = array[:1].nbytes
            for word, offset in body.made[k - op.beside + op.flags]:
                self._inits.append((word, self._results[k], offset, entry if backwards else 0))
                self._moves.append((word, -entry if backwards else entry, 0))
            if op.may_end_early:
                self._stacks.append((self._results[k], entry, array.nbytes))

    def _ask(self, condition: BoundBody, body: BoundBody, carries: int) -> None:
        """Ask whether to go on: before the first step, and after each, which says so behind its carries."""
        described, results = self._described, self._results
        steps = condition.steps
        described[LoopEntry.BEFORE], described[LoopEntry.BEFORE_COUNT] = steps.ctypes.data, len(steps)
        described[LoopEntry.BEFORE_FLAG], described[LoopEntry.FLAG] = condition.results[0], body.results[carries]
        described[LoopEntry.STEPS_AT], described[LoopEntry.FINISHED_AT] = results[carries], results[carries + 1]


class _GoneThrough(_Loop):
    """A loop whose steps one kernel runs, many at a time; carries stay in one buffer."""

    def _body(self, plan: Plan, fixed: Sequence[int]) -> BoundBody:
        kernel = self._binder.step_kernel(self._step)
        assert isinstance(self._op, PlannedScan)
        assert kernel is not None
        assert self._op.step_loop is not None
        body, many = bind_recurrence(kernel, self._op.step_loop, self._run, self._step, self._operands, self._out)
        self._described[LoopEntry.MANY] = many
        return body

    def _buffers(self, nbytes: int) -> tuple[int, int]:
        address: int = self._memory.take_bytes(nbytes).ctypes.data
        return address, address


def _rows(entries: Sequence[Sequence[int]], size: int) -> HostArray:
    return np.array(entries, np.int64).reshape(-1, size)
