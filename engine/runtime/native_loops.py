"""Native loops: run all steps of a loop by one native call, which repeats the bound calls of its body.

The call's table points to a description of the loop (`LoopEntry`), then to operands and results. The description has
lists of updates, by which the runner moves the pointers in the tables of the body's calls:

    inits      before the first step: set a word to the address of an operand, result or buffer, plus an offset
    moves      after each step: add a stride to a word, or exclusive-or it with a mask
    carries    copy each operand to its buffer at the beginning, and the last value to the result at the end
    stacks     fill the entries behind the last step with zeros

A carry has two buffers, since a step reads the old value while it writes the new one. The words that point to them are
exclusive-ored with `first ^ second`, which exchanges the buffers in one instruction. As every move is relative, the
body's calls know nothing of the loop. And a loop within the body is just one more call.

If the body is a recurrence, its kernel runs many steps per call, and each move is multiplied by their number
(`_RecurrenceLoop`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from engine.autodiff.control_flow import Parts, split_operands
from engine.codegen.kernels.compiled import block_count
from engine.codegen.kernels.recurrence import recurrence_layout, recurrence_table
from engine.codegen.native.native_call import (
    BOUNDS,
    CarryEntry,
    InitEntry,
    LoopEntry,
    MoveEntry,
    NativeCall,
    NativeGuard,
    Runner,
    StackEntry,
    join_calls,
)
from engine.compiler.control_flow import PlannedCond, PlannedCountedScan, PlannedScan, PlannedWhile, RunsPlans, StepLoop
from engine.compiler.plan import Plan, Step
from engine.ir.op import Kernel, KernelCall
from engine.ir.run_context import ALIGNMENT, RunContext, aligned
from engine.ir.tensor_type import HostArray, TensorType
from engine.runtime.binding import Binder, StepKernel
from engine.runtime.memory_layout import BodyNeeds, NativeMemory, array_on, body_needs, memory_at
from engine.runtime.native_bodies import BoundBody, NotNative, Pointer, bind_body
from engine.runtime.prepared_plan import NativeStep, single_thread_rows

#: words that are read at each pause; looking up members of an enum takes longer
_ENDED: Final = int(LoopEntry.ENDED)
_AT: Final = int(LoopEntry.AT)
_ASKS: Final = int(LoopEntry.ASKS)
_GOES_ON: Final = int(LoopEntry.GOES_ON)
#: position for arrays that are not in the table
_NO_POSITION: Final = -1
#: approximate elements of one scalar that are computed per nanosecond
_ELEMENTS_PER_NANOSECOND: Final = 8
#: bytes that native loops may take in addition to the planned memory
_EXTRA_BYTES: Final = 1 << 16
#: nanoseconds of steps between two checks of the clock
_CLOCK_CHECK_NANOSECONDS: Final = 500_000


class ResumedLoop:
    """The rest of a loop that the runner has paused. A call runs the paused step, then resumes the runner.

    If a kernel has met an argument out of its range, the loop runs again from the beginning, step by step in Python.
    Its carries have changed, but the operands have not, because no step writes to them.
    """

    def __init__(
        self,
        run: RunContext,
        step: Step,
        call: NativeCall,
        description: HostArray,
        bodies: Sequence[BoundBody],
        consts: Sequence[int],
    ) -> None:
        """Take the loop's call. `consts` are positions in its table, where operands begin at 1, followed by results."""
        self._run, self._step, self._call, self._bodies, self._consts = run, step, call, bodies, consts
        self._words, self._table = description.data, call.entries[0].data
        self._pauses = bodies[-1].pauses, bodies[0].pauses
        arrays = [call.arrays[position] for position in range(1, len(self._table))]
        self._types = list(map(TensorType.of, arrays))

    def __call__(self) -> None:
        """Run to the end. Raises DeadlineExceeded, and errors of steps, with their node."""
        try:
            for body in self._bodies:
                addresses = {feed: self._table[self._consts[feed]] for feed in body.consts}
                body.begin(self._run.deadline, addresses)
            self._resume()
        finally:
            for body in self._bodies:
                body.end()

    def _resume(self) -> None:
        words, check = self._words, self._run.deadline.check
        function, table = self._call.function, self._call.entries.ctypes.data
        while words[_ENDED]:
            position = words[_AT]
            if position < 0:
                raise self._run.stop_flag.ended()
            # A negative position, above, means that the deadline has passed. A position without steps is the guard of a
            # kernel that found an argument out of range.
            python_steps = self._pauses[words[_ASKS]].get(position)
            if python_steps is None:
                self._restart_in_python()
                return
            check()
            for step in python_steps:
                step()
            words[_GOES_ON] = 1
            function(0, 1, table)

    def _restart_in_python(self) -> None:
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
    """Bind a recurrence as the body of a loop, and return the address of the word that counts its steps.

    The body is one native call. The runner leaves the loop at a step with an argument out of range.
    """
    attrs, layout = step.attrs, recurrence_layout(kernel.recurrence)
    entries = loop.entries(operands, out, attrs["carries"], reverse=attrs["reverse"])
    table = recurrence_table(kernel.recurrence, loop.space, 0, entries)[np.newaxis]
    is_out_of_range = np.zeros(1, np.int64)
    call = NativeCall(
        kernel.code.function, kernel.code.address, block_count(loop.space), table, (kernel, is_out_of_range)
    )
    call.place(layout.flag, is_out_of_range.ctypes.data, is_out_of_range.nbytes)
    cost = len(kernel.recurrence.varying()) * max(1, loop.space.length // _ELEMENTS_PER_NANOSECOND)
    steps = [NativeStep(call, cost), NativeStep(NativeGuard(is_out_of_range, join_calls(())), 0)]
    operand_places = zip(loop.inputs, layout.kernel.operands, layout.operands, strict=True)
    result_places = zip(out, layout.kernel.results, layout.results, strict=True)
    body = BoundBody(
        steps=single_thread_rows(steps if kernel.recurrence.out_of_range is not None else steps[:1]),
        pauses={},
        consts=(),
        feed_pointers={
            feed: _pointers(table[0], position, operands[feed], entry) for feed, position, entry in operand_places
        },
        result_pointers=[_pointers(table[0], position, array, entry) for array, position, entry in result_places],
        result_addresses=(),
        nanoseconds=cost,
        run=run,
        references=steps,
    )
    return body, table.ctypes.data + 8 * layout.steps


def _pointers(table: HostArray, position: int, array: HostArray, entry: int) -> list[Pointer]:
    """Return the word that points to an array, or to an entry of it, and the words of its bounds."""
    nbytes = array[:1].nbytes if table[entry] else array.nbytes
    bounds = zip(BOUNDS.words(table, position), (0, nbytes), strict=False)
    return [Pointer(int(table.ctypes.data) + 8 * position, 0), *[Pointer(place, offset) for place, offset in bounds]]


class _LoopMemory(NamedTuple):
    """Bytes of a loop as one call and those allocated by Python steps; its bodies and bytes of carries as planned."""

    call: int
    python_bytes: int
    bodies: Sequence[Plan]
    carries: int


def loop_workspaces(binder: Binder, plan: Plan) -> dict[Kernel, int]:
    """Compute the workspace of each loop or `cond` of a plan as one native call; 0 if it runs step by step in Python.

    All loops together stay within the memory that was planned for them. In Python, a loop takes less, so the loops that
    would take the most run in Python first.
    """
    loops: dict[Kernel, _LoopMemory] = {step.op: _loop_memory(binder, step) for step in plan.steps if step.op.runs}
    if binder.runner is None or not loops:
        return dict.fromkeys(loops, 0)
    byte_limit = _bodies_bytes(loops.values()) + max(loop.carries for loop in loops.values()) + _EXTRA_BYTES
    native_loops = sorted(loops, key=lambda op: loops[op].call + loops[op].python_bytes)
    while native_loops and _total_bytes(loops, native_loops) > byte_limit:
        native_loops.pop()
    return {op: loop.call if op in native_loops else 0 for op, loop in loops.items()}


def _total_bytes(loops: Mapping[Kernel, _LoopMemory], native_loops: Sequence[Kernel]) -> int:
    """Count the bytes of all loops. Native ones run one at a time, in the same memory."""
    python_loops = [loop for op, loop in loops.items() if op not in native_loops]
    native = [loops[op] for op in native_loops]
    return (
        max(loop.call for loop in native)
        + _bodies_bytes(python_loops)
        + max([loop.carries for loop in python_loops] + [loop.python_bytes for loop in native])
    )


def _bodies_bytes(loops: Iterable[_LoopMemory]) -> int:
    """Count the bytes of the bodies of loops, each body once."""
    return sum(body.working_bytes for body in {body for loop in loops for body in loop.bodies})


def _loop_memory(binder: Binder, step: Step) -> _LoopMemory:
    assert isinstance(step.op, RunsPlans)
    needs = _needs(binder, step)
    if isinstance(step.op, (PlannedScan, PlannedWhile)):  # each carry has two buffers
        carry_types = step.op.plans[-1].result_types[: step.attrs["carries"]]
        call = sum(need.taken for need in needs) + 2 * sum(aligned(max(8, type.nbytes)) for type in carry_types)
    else:  # only one of the branches runs
        call = max(need.taken for need in needs)
    planned_bytes = step.op.workspace(step.types, **step.attrs)
    carries = planned_bytes - sum(body.working_bytes for body in step.op.runs)
    python_bytes = max([need.python_bytes for need in needs], default=0)
    return _LoopMemory(ALIGNMENT + call, python_bytes, step.op.runs, carries)


def _needs(binder: Binder, step: Step) -> Sequence[BodyNeeds]:
    """Return the needs of each body; none if one kernel runs all steps."""
    assert isinstance(step.op, RunsPlans)
    if binder.step_kernel(step) is not None:
        return ()
    plans, consts = step.op.plans, len(_parts(step).consts)
    flags = [(0,), (step.attrs["carries"],)] if isinstance(step.op, PlannedWhile) else [()] * len(plans)
    return [body_needs(binder, plan, fixed, consts) for plan, fixed in zip(plans, flags, strict=True)]


def _parts(step: Step) -> Parts:
    """Return the positions of consts, carries and sequences in the table. In a `cond`, they follow the predicate."""
    positions = range(1, 1 + len(step.operands))
    if isinstance(step.op, (PlannedScan, PlannedWhile)):
        operand_positions = positions[:-1] if isinstance(step.op, PlannedCountedScan) else positions
        return split_operands(operand_positions, step.attrs["carries"], step.attrs.get("sequences", 0))
    return Parts(positions[1:] if isinstance(step.op, PlannedCond) else positions, (), ())


def bind_loop(
    binder: Binder, run: RunContext, step: Step, operands: Sequence[HostArray], out: Sequence[HostArray]
) -> Sequence[KernelCall] | None:
    """Bind a loop or `cond` as native calls; return None if that is not possible."""
    op, runner = step.op, binder.runner
    if runner is None or run.stop_flag is None or not isinstance(op, RunsPlans) or not binder.workspace(step):
        return None
    if not all(x.flags.c_contiguous for x in operands):
        return None
    native: Sequence[_NativeBodies]
    if isinstance(op, (PlannedScan, PlannedWhile)):
        loop_class = _Loop if binder.step_kernel(step) is None else _RecurrenceLoop
        native = [loop_class(binder, runner, run, step, operands, out)]
    else:
        branches = (0, 1) if isinstance(op, PlannedCond) else (None,)
        native = [_SingleRun(binder, runner, run, step, operands, out, branch) for branch in branches]
    try:
        return [call for bodies in native for call in bodies.calls()]
    except NotNative:
        return None


class _NativeBodies(ABC):
    """Bodies as one call, whose table points to its description, then to operands, then to results.

    If these move, only this table is updated. When the call begins, it derives all other addresses from it.
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
        """Take the arrays of a step. `branch` is the index of a body in a `cond`, whose branches share memory."""
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
        self._description: HostArray = np.zeros(LoopEntry.SIZE, np.int64)
        for entry in LoopEntry.LENGTH_AT, LoopEntry.STEPS_AT, LoopEntry.FINISHED_AT, LoopEntry.WHEN_AT:
            self._description[entry] = _NO_POSITION

    @property
    def _results(self) -> range:
        return range(1 + len(self._operands), 1 + len(self._operands) + len(self._out))

    def _bind(self, plan: Plan, fixed: Sequence[int] = ()) -> BoundBody:
        body = self._body(plan, fixed)
        for feed, position in enumerate(self._parts.consts):
            self._start_at(body, feed, position)
        self._bodies.append(body)
        return body

    def _body(self, plan: Plan, fixed: Sequence[int]) -> BoundBody:
        consts = len(self._parts.consts)
        return bind_body(self._binder, self._runner, self._run, plan, self._memory, fixed, consts)

    def _start_at(self, body: BoundBody, feed: int, position: int, last: int = 0, stride: int = 0) -> None:
        for word, offset in body.feed_pointers.get(feed, ()):
            self._inits.append((word, position, offset, last))
            if stride:
                self._moves.append((word, stride, 0))

    def _make_calls(self, body: BoundBody, length: int) -> Sequence[KernelCall]:
        """Return the call, and a guard that resumes it in Python if it has not reached its end."""
        description = self._description
        lists = {
            LoopEntry.INITS: _rows(self._inits, InitEntry.SIZE),
            LoopEntry.MOVES: _rows(self._moves, MoveEntry.SIZE),
            LoopEntry.CARRIES: _rows(self._carries, CarryEntry.SIZE),
            LoopEntry.STACKS: _rows(self._stacks, StackEntry.SIZE),
            LoopEntry.STEPS: body.steps,
        }
        for entry, rows in lists.items():
            description[entry], description[entry + 1] = rows.ctypes.data, len(rows)
        description[LoopEntry.LENGTH] = length
        description[LoopEntry.WATCH], description[LoopEntry.POOL] = self._run.stop_flag.address, self._runner.pool
        description[LoopEntry.LOOK_STEPS] = max(1, _CLOCK_CHECK_NANOSECONDS // max(1, body.nanoseconds))
        table = BOUNDS.tables(1, self._results.stop)
        table[0, 0] = description.ctypes.data
        call = NativeCall(
            self._runner.repeat, self._runner.repeat_address, 1, table, (description, lists, self._bodies, self._memory)
        )
        for position, array in enumerate([*self._operands, *self._out], 1):
            call.point(position, array)
        ended = description[LoopEntry.ENDED : LoopEntry.ENDED + 1]
        resumed_loop = ResumedLoop(self._run, self._step, call, description, self._bodies, self._parts.consts)
        return [(call, ()), (NativeGuard(ended, (resumed_loop, ())), ())]

    @abstractmethod
    def calls(self) -> Sequence[KernelCall]:
        """Return the call and its guard. Raises NotNative."""


class _SingleRun(_NativeBodies):
    """A body that runs once, or a branch of a `cond`, which runs depending on the predicate."""

    def calls(self) -> Sequence[KernelCall]:
        body = self._bind(self._op.plans[self._branch or 0])
        for position, places in zip(self._results, body.result_pointers, strict=True):
            self._inits += [(word, position, offset, 0) for word, offset in places]
        if self._branch is not None:
            self._description[LoopEntry.WHEN_AT], self._description[LoopEntry.WHEN] = 1, 1 - self._branch
        return self._make_calls(body, 1)


class _Loop(_NativeBodies):
    """A body that runs step by step."""

    def calls(self) -> Sequence[KernelCall]:
        assert isinstance(self._op, (PlannedScan, PlannedWhile))
        *conditions, step = self._op.plans
        flag = (self._attrs["carries"],) if conditions else ()
        bodies = [*[self._bind(plan, (0,)) for plan in conditions], self._bind(step, flag)]
        parts, backwards = self._parts, bool(self._attrs.get("reverse"))
        self._add_carries(bodies, len(parts.consts), parts.carries)
        for feed, position in enumerate(parts.sequences, len(parts.consts) + len(parts.carries)):
            entry = self._operands[position - 1][:1].nbytes
            self._start_at(bodies[-1], feed, position, entry if backwards else 0, -entry if backwards else entry)
        self._add_stacks(self._op, bodies[-1], len(parts.carries))
        if isinstance(self._op, PlannedCountedScan):
            self._description[LoopEntry.LENGTH_AT] = len(self._operands)
        if isinstance(self._op, PlannedWhile):
            self._describe_condition(bodies[0], bodies[-1], len(parts.carries))
        return self._make_calls(bodies[-1], self._op.most_steps(self._attrs))

    def _add_carries(self, bodies: Sequence[BoundBody], consts: int, positions: Sequence[int]) -> None:
        body = bodies[-1]
        for k, position in enumerate(positions):
            array, feed = self._operands[position - 1], consts + k
            first, second = self._buffers(max(8, array.nbytes))
            self._carries.append((position, self._results[k], first, second, array.nbytes))
            for body_or_condition in bodies:
                self._inits += [
                    (word, _NO_POSITION, first + offset, 0)
                    for word, offset in body_or_condition.feed_pointers.get(feed, ())
                ]
            self._inits += [(word, _NO_POSITION, second + offset, 0) for word, offset in body.result_pointers[k]]
            # x ^ first ^ second maps the address in one buffer to that in the other one, in both directions.
            alternating = [*body.feed_pointers.get(feed, ()), *body.result_pointers[k]]
            self._moves += [(word, 0, (first + offset) ^ (second + offset)) for word, offset in alternating]

    def _buffers(self, nbytes: int) -> tuple[int, int]:
        """Return the addresses of the two buffers between which a carry alternates."""
        first, second = (self._memory.take_bytes(nbytes).ctypes.data for _ in range(2))
        return first, second

    def _add_stacks(self, op: PlannedScan | PlannedWhile, body: BoundBody, carries: int) -> None:
        """Advance pointers into stacks, which follow the carries.

        In a `while`, they follow `steps` and `finished`, and in its body, the flag.
        """
        backwards = bool(self._attrs.get("reverse"))
        first = carries + op.extra_results
        for k, array in enumerate(self._out[first:], first):
            entry = array[:1].nbytes
            for word, offset in body.result_pointers[k - op.extra_results + op.flag_results]:
                self._inits.append((word, self._results[k], offset, entry if backwards else 0))
                self._moves.append((word, -entry if backwards else entry, 0))
            if op.may_end_early:
                self._stacks.append((self._results[k], entry, array.nbytes))

    def _describe_condition(self, condition: BoundBody, body: BoundBody, carries: int) -> None:
        """Evaluate the condition before the first step. Each further step returns its value behind the carries."""
        description, results = self._description, self._results
        steps = condition.steps
        description[LoopEntry.BEFORE], description[LoopEntry.BEFORE_COUNT] = steps.ctypes.data, len(steps)
        description[LoopEntry.BEFORE_FLAG], description[LoopEntry.FLAG] = (
            condition.result_addresses[0],
            body.result_addresses[carries],
        )
        description[LoopEntry.STEPS_AT], description[LoopEntry.FINISHED_AT] = results[carries], results[carries + 1]


class _RecurrenceLoop(_Loop):
    """A loop whose kernel runs many steps per call. It overwrites carries, so each has only one buffer."""

    def _body(self, plan: Plan, fixed: Sequence[int]) -> BoundBody:
        kernel = self._binder.step_kernel(self._step)
        assert isinstance(self._op, PlannedScan)
        assert kernel is not None
        assert self._op.step_loop is not None
        body, many = bind_recurrence(kernel, self._op.step_loop, self._run, self._step, self._operands, self._out)
        self._description[LoopEntry.MANY] = many
        return body

    def _buffers(self, nbytes: int) -> tuple[int, int]:
        address: int = self._memory.take_bytes(nbytes).ctypes.data
        return address, address


def _rows(entries: Sequence[Sequence[int]], size: int) -> HostArray:
    return np.array(entries, np.int64).reshape(-1, size)
