"""Native bodies: bind the body of a loop once, as a list of native calls that serves all steps.

A native call gets a table of 64-bit words: addresses, strides and bounds of its operands and results. To run a step of
a loop, only those addresses have to change that point to moving arrays. For `scan(s0, xs; body: s, x → s + sin(x))`:

    call     table            after each step, the runner
    sin      [&x, &y]         adds the bytes of an entry of xs to &x; y stays in the memory of the body
    add      [&s, &y, &s']    exchanges &s and &s', as the carry alternates between two buffers

Ops need not know about this. A body is bound like a plan, except that arrays that move get placeholder addresses, at
which there is no memory. `_pointers` then searches the tables for words in the address range of each placeholder. Such
a word and its offset in the array make a `Pointer`, which a loop (`native_loops`) turns into an entry of its list of
updates. Views are found in the same way, since their addresses lie within those of their operand.

A step without a native call is a pause of the list (`PythonStep`). The runner returns to Python, which runs the step on
arrays that do not move, and calls the runner again to continue. Native copies before and after the pause transfer the
moving arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.native.native_call import BOUNDS, MOST_AXES, NativeCall, NativeGuard, Runner, byte_span, join_calls
from engine.compiler.control_flow import RunsPlans
from engine.compiler.plan import Plan, Step
from engine.ir.errors import DeadlineExceeded, EngineError
from engine.ir.graph import Origin, locate_error
from engine.ir.op import KernelCall
from engine.ir.run_context import NO_DEADLINE, Deadline, RunContext
from engine.ir.tensor_type import HostArray
from engine.ops.common.numerics import NullaryOp
from engine.runtime.binding import Binder
from engine.runtime.memory_layout import (
    BodyLayout,
    ConstView,
    NativeMemory,
    StepArrays,
    blocks,
    body_needs,
    is_made_natively,
    memory_at,
    moves,
)
from engine.runtime.prepared_plan import MOST_NANOSECONDS, NativeStep, single_thread_rows

#: entry of a list at which the runner always returns to Python
PAUSE_GUARD: Final = NativeGuard(np.ones(1, np.int64), (lambda: None, ()))


class PythonStep:
    """A step that Python runs while the runner is paused. `bind` makes its calls on operands that do not move.

    Consts are read in place, so the step is bound when the loop knows their addresses.
    """

    def __init__(
        self,
        origin: Origin | None,
        operands: Sequence[HostArray | ConstView],
        bind: Callable[[Sequence[HostArray]], Sequence[KernelCall]],
    ) -> None:
        self._origin, self._operands, self._bind = origin, operands, bind
        #: feeds that the step reads in place
        self.consts = [operand.feed for operand in operands if isinstance(operand, ConstView)]
        self._addresses: list[int] = []
        self._bound_call: KernelCall | None = None
        if not self.consts:
            self.bind_consts({})

    def bind_consts(self, addresses: Mapping[int, int]) -> None:
        """Bind the step to consts at these addresses, by feed, unless it is bound to them already."""
        current = [addresses[feed] for feed in self.consts]
        if self._bound_call is None or current != self._addresses:
            arrays = [_const_array(x, addresses) if isinstance(x, ConstView) else x for x in self._operands]
            self._bound_call, self._addresses = join_calls(self._bind(arrays)), current

    def __call__(self) -> None:
        """Run the step. Errors name its node."""
        assert self._bound_call is not None
        function, arguments = self._bound_call
        try:
            function(*arguments)
        except DeadlineExceeded:
            raise  # not caused by the node
        except EngineError as error:
            raise locate_error(error, self._origin) from None


def _const_array(view: ConstView, addresses: Mapping[int, int]) -> HostArray:
    feed, offset, template = view
    bytes_before, bytes_behind = byte_span(template)
    memory = memory_at(addresses[feed] + offset - bytes_before, bytes_before + bytes_behind)
    return np.ndarray(template.shape, template.dtype, memory, bytes_before, template.strides)


class NotNative(Exception):
    """Failure to bind a body as a list of native calls."""


class Pointer(NamedTuple):
    """The address of a table's word that points into an array, and the offset in the array."""

    word: int
    offset: int


@dataclass(eq=False)
class BoundBody:
    """A body's bound calls, with memory of their own.

    `feed_pointers` are the words that point into each feed, and `result_pointers` those that point into each result,
    which the calls write at its `result_addresses`. `pauses` are the steps that Python runs, by the number of the call
    that they replace or follow. `consts` are the feeds that these steps read in place. `references` keeps alive
    everything that the tables point to.
    """

    steps: HostArray
    pauses: Mapping[int, Sequence[PythonStep]]
    consts: Sequence[int]
    feed_pointers: Mapping[int, Sequence[Pointer]]
    result_pointers: Sequence[Sequence[Pointer]]
    result_addresses: Sequence[int]
    nanoseconds: int
    run: RunContext
    references: Any

    def begin(self, deadline: Deadline, addresses: Mapping[int, int]) -> None:
        """Set the deadline of the steps that Python runs, and bind them to the addresses of consts."""
        self.run.deadline = deadline
        if self.consts:
            for step in chain(*self.pauses.values()):
                step.bind_consts(addresses)

    def end(self) -> None:
        """Drop the deadline."""
        self.run.deadline = NO_DEADLINE


def bind_body(
    binder: Binder, runner: Runner, run: RunContext, plan: Plan, memory: NativeMemory, fixed: Sequence[int], consts: int
) -> BoundBody:
    """Bind a body. Results go to the loop's memory, except `fixed` ones. Raises NotNative."""
    inner = RunContext(run.xp)
    inner.stop_flag, inner.bind_plan, inner.threads = run.stop_flag, run.bind_plan, run.threads
    layout = BodyLayout(plan, fixed, consts, memory)
    inner.workspace = memory.take_bytes(body_needs(binder, plan, fixed, consts).transient)
    binding = _Binding(binder, runner, inner, layout)
    for step in plan.steps:
        step_arrays = layout.put(step, partial(_constant, inner))
        if step_arrays is not None:
            binding.add(step, step_arrays)
    results = [layout.slots[slot] for slot in plan.results]
    for k, target in enumerate(layout.copies):
        if target is not None:
            binding.copy(target, results[k])
            results[k] = target
    native_steps, pauses = binding.calls, binding.pauses
    calls = [native.call for native in native_steps if isinstance(native.call, NativeCall)]
    # Collect every word of a table that points to an array. Which arrays move is decided by address below.
    words = [
        _Word(table.ctypes.data + 8 * position, int(table[position]), BOUNDS.words(table, position))
        for table, arrays in ((call.entries[0], call.arrays) for call in calls)
        for position in arrays
    ]
    # Tables point to constants, and to numbers that an op made for its calls. Nothing else keeps these alive.
    references = [array for call in calls for array in call.arrays.values()]
    body = BoundBody(
        single_thread_rows(native_steps),
        pauses,
        sorted({feed for step in chain(*pauses.values()) for feed in step.consts}),
        {feed: _pointers(words, array) for feed, array in layout.fed.items()},
        [_pointers(words, array) for array in results],
        [array.ctypes.data for array in results],
        sum(step.nanoseconds for step in native_steps),
        inner,
        (native_steps, references),
    )
    for call in calls:
        call.arrays.clear()  # arrays with placeholder addresses must never be read
    return body


def _constant(run: RunContext, step: Step) -> HostArray:
    assert isinstance(step.op, NullaryOp)
    constant: HostArray = step.op.tensor(run, step.types[0], **step.attrs)
    return constant


class _Binding:
    """The growing list of a body's calls, and of the steps that Python runs, by number."""

    def __init__(self, binder: Binder, runner: Runner, run: RunContext, layout: BodyLayout) -> None:
        self._binder, self._runner, self._run, self._layout = binder, runner, run, layout
        self.calls: list[NativeStep] = []
        self.pauses: dict[int, list[PythonStep]] = {}
        self._until_deadline_check = 0

    def add(self, step: Step, arrays: StepArrays) -> None:
        """Append the calls of a step. Raises NotNative."""
        copies = step.op.as_copies(self._run.xp, arrays.operands, arrays.out, step.attrs)
        if not is_made_natively(self._binder, step, arrays):
            self._add_pause(step, arrays)
        elif copies is not None:
            for pair in copies:
                self.copy(*pair, step)
        else:
            self._bound_call(step, self._binder.calls(self._run, step, arrays.operands, arrays.out))

    def copy(self, target: HostArray, source: HostArray, step: Step | None = None) -> None:
        """Append a copy between two views of the same shape and dtype. Raises NotNative."""
        call = _copy(self._runner, target, source)
        self.calls.append(NativeStep(call, target.nbytes, step.origin if step else None))

    def _bound_call(self, step: Step, calls: Sequence[KernelCall]) -> None:
        """Append native calls. A nested loop may pause, and Python then resumes it. Raises NotNative."""
        nanoseconds = (step.flops + sum(type.nbytes for type in step.types)) // max(1, len(calls)) + 1
        for call, _ in calls:
            if not isinstance(call, NativeCall | NativeGuard):
                raise NotNative
            if isinstance(call, NativeGuard) and isinstance(step.op, RunsPlans):
                self.pauses[len(self.calls)] = [PythonStep(step.origin, (), partial(_ignore_operands, call.call))]
            self.calls.append(NativeStep(call, nanoseconds, step.origin))

    def _add_pause(self, step: Step, arrays: StepArrays) -> None:
        """Append copies of the moving operands, a pause for the step, and copies of its results."""
        memory = NativeMemory(self._run.workspace)
        memory.take_bytes(self._binder.workspace(step))
        operands = [self._fixed_operand(step, x, memory) for x in arrays.operands]
        results = [np.ndarray(y.shape, y.dtype, memory.take_bytes(y.nbytes)) if moves(y) else y for y in arrays.results]
        out: Any = tuple(results) if step.op.several else results[0]
        self._join_pause(step, PythonStep(step.origin, operands, partial(self._bind_step, step, out)))
        for y, fixed in zip(arrays.results, results, strict=True):
            if fixed is not y:
                self.copy(y, fixed, step)

    def _join_pause(self, step: Step, python_step: PythonStep) -> None:
        """Append a pause, or join the last call if it is a pause, unless the deadline is due to be checked."""
        self._until_deadline_check -= step.flops + sum(type.nbytes for type in step.types)
        if self.calls and self.calls[-1].call is PAUSE_GUARD and self._until_deadline_check > 0:
            self.pauses[len(self.calls) - 1].append(python_step)
            return
        self._until_deadline_check = MOST_NANOSECONDS
        self.pauses[len(self.calls)] = [python_step]
        self.calls.append(NativeStep(PAUSE_GUARD, 0))

    def _bind_step(self, step: Step, out: Any, operands: Sequence[HostArray]) -> Sequence[KernelCall]:
        return self._binder.calls(self._run, step, operands, out)

    def _fixed_operand(self, step: Step, operand: HostArray, space: NativeMemory) -> HostArray | ConstView:
        """Return an operand that does not move, its const, or a copy.

        The copy has the same strides, because NumPy's order of summation depends on them.
        """
        const = self._layout.const(operand)
        if const is not None or not moves(operand):
            return operand if const is None else const
        bytes_before, bytes_behind = byte_span(operand)
        memory = space.take_bytes(bytes_before + bytes_behind)
        source_memory = memory_at(operand.ctypes.data - bytes_before, bytes_before + bytes_behind)
        self.copy(memory, np.ndarray(bytes_before + bytes_behind, np.uint8, source_memory), step)
        return np.ndarray(operand.shape, operand.dtype, memory, bytes_before, operand.strides)


def _ignore_operands(call: KernelCall, _: Sequence[HostArray]) -> Sequence[KernelCall]:
    return (call,)


def _copy(runner: Runner, target: HostArray, source: HostArray) -> NativeCall:
    block, axes = blocks(target, source)
    if len(axes) > MOST_AXES:
        raise NotNative
    numbers = [0, 0, block, len(axes), *[number for axis in axes for number in axis]]
    entries = BOUNDS.tables(1, len(numbers))
    entries[0] = numbers
    call = NativeCall(runner.copy, runner.copy_address, min(1, target.size), entries)
    call.point(0, target)
    call.point(1, source)
    return call


class _Word(NamedTuple):
    """A word of a table that points to an array: its address, its value, and the addresses of the array's bounds."""

    place: int
    address: int
    bounds: Sequence[int]


def _pointers(words: Sequence[_Word], array: HostArray) -> list[Pointer]:
    first = array.ctypes.data
    end = first + max(1, array.nbytes)
    matching = [word for word in words if first <= word.address < end]
    targets = [(word.place, word.address) for word in matching]
    targets += [(place, ctypes.c_int64.from_address(place).value) for word in matching for place in word.bounds]
    return [Pointer(place, address - first) for place, address in targets]
