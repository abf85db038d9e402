"""Loop bodies as lists of native calls, bound once: words of their tables say where the moving arrays lie.

A call has a table of 64-bit words: addresses, strides and bounds of its operands and results. A loop advances an array
by adding to its address, so that one list of calls serves all steps. `_pointers` finds the words that point into each
array: of a scan over `xs` whose body is `y = sin(x)`, one word of the call `sin` points at `x`, and the runner adds the
bytes of an entry to it after each step.

A step without a native call is a pause of the list (`PythonStep`): the runner returns, Python makes the step on arrays
that lie still, between copies from and to the arrays that move, and the runner goes on behind it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from engine.codegen.native.native_call import MOST_AXES, WATCHED, NativeCall, NativeGuard, Runner, joined, reach
from engine.compiler.control_flow import RunsPlans
from engine.compiler.plan import Plan, Step
from engine.ir.errors import DeadlineExceeded, EngineError
from engine.ir.graph import Origin, at_origin
from engine.ir.op import KernelCall
from engine.ir.run_context import NO_DEADLINE, Deadline, RunContext
from engine.ir.tensor_type import HostArray
from engine.ops.common.numerics import Source
from engine.runtime.binding import Binder
from engine.runtime.memory_layout import (
    BodyLayout,
    ConstView,
    Laid,
    NativeMemory,
    blocks,
    body_needs,
    is_made_natively,
    memory_at,
    moves,
)
from engine.runtime.prepared_plan import MOST_NANOSECONDS, NativeStep, alone

#: entry of a runner's list at which it always returns
PAUSE_GUARD: Final = NativeGuard(np.ones(1, np.int64), (lambda: None, ()))


class PythonStep:
    """A step that Python makes while the runner waits: `bind` makes its calls on operands that lie still.

    Consts are read in place: the step is bound to them as soon as a loop knows where they lie.
    """

    def __init__(
        self,
        origin: Origin | None,
        operands: Sequence[HostArray | ConstView],
        bind: Callable[[Sequence[HostArray]], Sequence[KernelCall]],
    ) -> None:
        self._origin, self._operands, self._bind = origin, operands, bind
        #: the feeds that it reads in place
        self.consts = [operand.feed for operand in operands if isinstance(operand, ConstView)]
        self._addresses: list[int] = []
        self._call: KernelCall | None = None
        if not self.consts:
            self.look({})

    def look(self, addresses: Mapping[int, int]) -> None:
        """Read consts at these addresses, by feed, from now on."""
        current = [addresses[feed] for feed in self.consts]
        if self._call is None or current != self._addresses:
            arrays = [_const_array(x, addresses) if isinstance(x, ConstView) else x for x in self._operands]
            self._call, self._addresses = joined(self._bind(arrays)), current

    def __call__(self) -> None:
        """Make the step. Raises what it finds in its data, with its node."""
        assert self._call is not None
        function, arguments = self._call
        try:
            function(*arguments)
        except DeadlineExceeded:
            raise  # the fault of no node
        except EngineError as error:
            raise at_origin(error, self._origin) from None


def _const_array(view: ConstView, addresses: Mapping[int, int]) -> HostArray:
    feed, offset, alike = view
    before, behind = reach(alike)
    memory = memory_at(addresses[feed] + offset - before, before + behind)
    return np.ndarray(alike.shape, alike.dtype, memory, before, alike.strides)


class NotNative(Exception):
    """Failure of a body that cannot be bound as a list of calls."""


class Pointer(NamedTuple):
    """A word of a table that points into an array: its address, and the offset in the array."""

    word: int
    offset: int


@dataclass(eq=False)
class BoundBody:
    """A body's calls, on memory of its own.

    `fed` are the words that point into each feed, `made` those that point into each result, which lies at one of the
    addresses `results`. `pauses` are the steps that Python makes, by the number of the call that they replace, or
    follow; `consts` are the feeds that these read in place.
    """

    steps: HostArray
    pauses: Mapping[int, Sequence[PythonStep]]
    consts: Sequence[int]
    fed: Mapping[int, Sequence[Pointer]]
    made: Sequence[Sequence[Pointer]]
    results: Sequence[int]
    nanoseconds: int
    run: RunContext
    kept: Any

    def begin(self, deadline: Deadline, addresses: Mapping[int, int]) -> None:
        """Give the steps that Python makes a deadline, and the addresses of consts."""
        self.run.deadline = deadline
        if self.consts:
            for step in chain(*self.pauses.values()):
                step.look(addresses)

    def end(self) -> None:
        """Drop the deadline."""
        self.run.deadline = NO_DEADLINE


def bind_body(
    binder: Binder, runner: Runner, run: RunContext, plan: Plan, memory: NativeMemory, fixed: Sequence[int], consts: int
) -> BoundBody:
    """Bind a body. Its results go to the loop's memory, but for those that are `fixed`. Raises NotNative."""
    inner = RunContext(run.xp)
    inner.watch, inner.bind_plan, inner.threads = run.watch, run.bind_plan, run.threads
    layout = BodyLayout(plan, fixed, consts, memory)
    inner.workspace = memory.take_bytes(body_needs(binder, plan, fixed, consts).passing)
    binding = _Binding(binder, runner, inner, layout)
    for step in plan.steps:
        laid = layout.put(step, partial(_constant, inner))
        if laid is not None:
            binding.add(step, laid)
    results = [layout.slots[slot] for slot in plan.results]
    for k, place in enumerate(layout.copies):
        if place is not None:
            binding.copy(place, results[k])
            results[k] = place
    made, pauses = binding.made, binding.pauses
    calls = [native.call for native in made if isinstance(native.call, NativeCall)]
    words = [
        _Word(table.ctypes.data + 8 * position, int(table[position]), WATCHED.words(table, position))
        for table, arrays in ((call.entries[0], call.arrays) for call in calls)
        for position in arrays
    ]
    # Tables point at constants, and at numbers that an op has made for its calls: nobody else keeps these.
    kept = [array for call in calls for array in call.arrays.values()]
    body = BoundBody(
        alone(made),
        pauses,
        sorted({feed for step in chain(*pauses.values()) for feed in step.consts}),
        {feed: _pointers(words, array) for feed, array in layout.fed.items()},
        [_pointers(words, array) for array in results],
        [array.ctypes.data for array in results],
        sum(step.nanoseconds for step in made),
        inner,
        (made, kept),
    )
    for call in calls:
        call.arrays.clear()  # some of them have addresses without memory
    return body


def _constant(run: RunContext, step: Step) -> HostArray:
    assert isinstance(step.op, Source)
    constant: HostArray = step.op.tensor(run, step.types[0], **step.attrs)
    return constant


class _Binding:
    """List of a body's calls as it grows, and the steps that Python makes, by number."""

    def __init__(self, binder: Binder, runner: Runner, run: RunContext, layout: BodyLayout) -> None:
        self._binder, self._runner, self._run, self._layout = binder, runner, run, layout
        self.made: list[NativeStep] = []
        self.pauses: dict[int, list[PythonStep]] = {}
        self._left = 0

    def add(self, step: Step, laid: Laid) -> None:
        """Append the calls of a step. Raises NotNative."""
        copies = step.op.as_copies(self._run.xp, laid.operands, laid.out, step.attrs)
        if not is_made_natively(self._binder, step, laid):
            self._pause(step, laid)
        elif copies is not None:
            for pair in copies:
                self.copy(*pair, step)
        else:
            self._call(step, self._binder.calls(self._run, step, laid.operands, laid.out))

    def copy(self, place: HostArray, source: HostArray, step: Step | None = None) -> None:
        """Append a copy of a view to another one, of the same shape and dtype. Raises NotNative."""
        call = _copy(self._runner, place, source)
        self.made.append(NativeStep(call, place.nbytes, step.origin if step else None))

    def _call(self, step: Step, calls: Sequence[KernelCall]) -> None:
        """Append native calls. Python may have to go on with a loop within the body. Raises NotNative."""
        nanoseconds = (step.flops + sum(type.nbytes for type in step.types)) // max(1, len(calls)) + 1
        for call, _ in calls:
            if not isinstance(call, NativeCall | NativeGuard):
                raise NotNative
            if isinstance(call, NativeGuard) and isinstance(step.op, RunsPlans):
                self.pauses[len(self.made)] = [PythonStep(step.origin, (), partial(_at_once, call.call))]
            self.made.append(NativeStep(call, nanoseconds, step.origin))

    def _pause(self, step: Step, laid: Laid) -> None:
        """Append copies of the arrays that move, a pause for the step, and copies back."""
        space = NativeMemory(self._run.workspace)
        space.take_bytes(self._binder.workspace(step))
        operands = [self._still(step, x, space) for x in laid.operands]
        results = [np.ndarray(y.shape, y.dtype, space.take_bytes(y.nbytes)) if moves(y) else y for y in laid.results]
        out: Any = tuple(results) if step.op.several else results[0]
        self._wait(step, PythonStep(step.origin, operands, partial(self._bound, step, out)))
        for y, still in zip(laid.results, results, strict=True):
            if still is not y:
                self.copy(y, still, step)

    def _wait(self, step: Step, paused: PythonStep) -> None:
        """Append a pause, or join the one at the end of the list, as long as no look at the clock is due."""
        self._left -= step.flops + sum(type.nbytes for type in step.types)
        if self.made and self.made[-1].call is PAUSE_GUARD and self._left > 0:
            self.pauses[len(self.made) - 1].append(paused)
            return
        self._left = MOST_NANOSECONDS
        self.pauses[len(self.made)] = [paused]
        self.made.append(NativeStep(PAUSE_GUARD, 0))

    def _bound(self, step: Step, out: Any, operands: Sequence[HostArray]) -> Sequence[KernelCall]:
        return self._binder.calls(self._run, step, operands, out)

    def _still(self, step: Step, operand: HostArray, space: NativeMemory) -> HostArray | ConstView:
        """Return an operand that lies still, its const, or a copy with the same strides: sums depend on these."""
        const = self._layout.const(operand)
        if const is not None or not moves(operand):
            return operand if const is None else const
        before, behind = reach(operand)
        memory = space.take_bytes(before + behind)
        lying = memory_at(operand.ctypes.data - before, before + behind)
        self.copy(memory, np.ndarray(before + behind, np.uint8, lying), step)
        return np.ndarray(operand.shape, operand.dtype, memory, before, operand.strides)


def _at_once(call: KernelCall, _: Sequence[HostArray]) -> Sequence[KernelCall]:
    return (call,)


def _copy(runner: Runner, place: HostArray, source: HostArray) -> NativeCall:
    block, axes = blocks(place, source)
    if len(axes) > MOST_AXES:
        raise NotNative
    numbers = [0, 0, block, len(axes), *[number for axis in axes for number in axis]]
    entries = WATCHED.tables(1, len(numbers))
    entries[0] = numbers
    call = NativeCall(runner.copy, runner.copy_address, min(1, place.size), entries)
    call.point(0, place)
    call.point(1, source)
    return call


class _Word(NamedTuple):
    """A word of a table that points at an array: its address, its value, and the addresses of the array's bounds."""

    place: int
    address: int
    bounds: Sequence[int]


def _pointers(words: Sequence[_Word], array: HostArray) -> list[Pointer]:
    first = array.ctypes.data
    past = first + max(1, array.nbytes)
    inside = [word for word in words if first <= word.address < past]
    placed = [(word.place, word.address) for word in inside]
    placed += [(place, ctypes.c_int64.from_address(place).value) for word in inside for place in word.bounds]
    return [Pointer(place, address - first) for place, address in placed]
