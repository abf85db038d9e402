"""Bodies of loops as lists of native calls: bound once, on addresses that stand for what moves from step to step.

What a body is given and gives lies where there is no memory, until a loop says where. Wherever a table points there, a
word changes from step to step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from engine.executors.binding import Binder
from engine.executors.lifetimes import Root, roots_of
from engine.executors.regions import NativeStep, alone
from engine.graph.alignment import ALIGNMENT, aligned
from engine.graph.op import View
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import HostArray, TensorType
from engine.native.native_call import NativeCall, NativeGuard
from engine.native.runner import Runner
from engine.native.runner_layout import MOST_AXES
from engine.oplib.source import Source
from engine.planning.plan import Plan, Step

#: beyond all addresses that a process has
_NO_MEMORY: Final = 1 << 60


class NotNative(Exception):
    """A body has a step that machine code does not make."""


class Pointer(NamedTuple):
    """A word of a table that points into an array, and how far from its beginning."""

    word: int
    offset: int


@dataclass(eq=False)
class BoundBody:
    """A body's calls, on memory of its own.

    `fed` are the places that point into what it is fed, by what that is fed under, `made` those that point into each
    result, which lies at one of the addresses `results`.
    """

    steps: HostArray
    fed: Mapping[int, Sequence[Pointer]]
    made: Sequence[Sequence[Pointer]]
    results: Sequence[int]
    nanoseconds: int
    kept: Any


def body_bytes(binder: Binder, plan: Plan, fixed: Sequence[int]) -> int:
    """What a body's calls work in: buffers and copies that do not lie elsewhere, and workspace."""
    away = _away(plan, fixed)
    buffers = [nbytes for k, nbytes in enumerate(plan.buffers) if k not in away]
    copied = [plan.result_types[k].nbytes for k in fixed if not _owned(plan)[k]]
    return sum(map(aligned, (*buffers, *copied, max(map(binder.workspace, plan.steps), default=0))))


def _away(plan: Plan, fixed: Sequence[int]) -> set[int]:
    """The buffers of results that are not `fixed`, and lie in memory of their own: in that of the loop."""
    owned, roots = _owned(plan), roots_of(plan)
    moved = {root for k, root in enumerate(roots) if owned[k] and k not in fixed}
    placed = ((Root(step.result, which), place) for step in plan.steps for which, place in enumerate(step.places))
    return {place.buffer for root, place in placed if root in moved}


def _owned(plan: Plan) -> list[bool]:
    """Whether each result lies in memory of its own: the others look at what is fed, constant, or there twice.

    Nor is it its own where something larger lies there before: of a stack, that would reach into the next entry.
    """
    sources = {step.result for step in plan.steps if isinstance(step.op, Source)}
    elsewhere, owned, seen = sources.union(plan.feeds.values()), list[bool](), set[Root]()
    places, reach = {step.result: step.places for step in plan.steps}, _reach(plan)
    for root, type in zip(roots_of(plan), plan.result_types, strict=True):
        is_own = root not in seen and root.slot not in elsewhere
        owned.append(is_own and reach[places[root.slot][root.which].buffer] <= type.nbytes)
        seen.add(root)
    return owned


def _reach(plan: Plan) -> Mapping[int, int]:
    """For each buffer, the bytes that anything ever takes of it."""
    reach: dict[int, int] = {}
    for step in plan.steps:
        for type, place in zip(step.types, step.places, strict=False):
            reach[place.buffer] = max(reach.get(place.buffer, 0), place.offset + type.nbytes)
    return reach


class NativeMemory:
    """Bytes that are given out piece by piece."""

    def __init__(self, whole: HostArray) -> None:
        self._whole = whole
        self._start = -whole.ctypes.data % ALIGNMENT

    def take(self, nbytes: int) -> HostArray:
        """The next so many."""
        start, self._start = self._start, self._start + aligned(nbytes)
        assert self._start <= len(self._whole) + ALIGNMENT
        return self._whole[start : start + nbytes]


class _Elsewhere:
    """Addresses where there is no memory: of what will lie elsewhere, and until then is not looked at."""

    def __init__(self) -> None:
        self._next = _NO_MEMORY

    def take(self, nbytes: int) -> Any:
        """The next so many bytes, and one at least."""
        address, self._next = self._next, self._next + aligned(max(1, nbytes))
        return (ctypes.c_char * max(1, nbytes)).from_address(address)


def bind_body(
    binder: Binder, runner: Runner, run: RunContext, plan: Plan, memory: NativeMemory, fixed: Sequence[int]
) -> BoundBody:
    """Its results go elsewhere, but for those that are `fixed`. Raises NotNative."""
    away, moved = _Elsewhere(), _away(plan, fixed)
    buffers = [(away if k in moved else memory).take(nbytes) for k, nbytes in enumerate(plan.buffers)]
    inner = RunContext(run.xp)
    inner.watch, inner.bind_plan = run.watch, run.bind_plan
    fed: dict[Any, HostArray] = {feed: _placed(type, away.take(type.nbytes)) for feed, type in plan.feed_types.items()}
    slots: list[Any] = [None] * plan.slots
    for feed, slot in plan.feeds.items():
        slots[slot] = fed[feed]
    owned = _owned(plan)
    copies = [
        None if owned[k] else (memory if k in fixed else away).take(type.nbytes)
        for k, type in enumerate(plan.result_types)
    ]
    inner.workspace = memory.take(max(map(binder.workspace, plan.steps), default=0))
    made: list[NativeStep] = []
    for step in plan.steps:
        made += _bind_step(binder, runner, inner, step, slots, buffers)
    results = [slots[slot] for slot in plan.results]
    for k, (type, space) in enumerate(zip(plan.result_types, copies, strict=True)):
        if space is not None:
            place = _placed(type, space)
            made.append(NativeStep(_copy(runner, place, results[k]), type.nbytes))
            results[k] = place
    words = [word for native in made if isinstance(native.call, NativeCall) for word in _words(native.call)]
    constants = [slots[step.result] for step in plan.steps if isinstance(step.op, Source)]
    body = BoundBody(
        alone(made),
        {feed: _places(words, array) for feed, array in fed.items()},
        [_places(words, array) for array in results],
        [array.ctypes.data for array in results],
        sum(step.nanoseconds for step in made),
        (made, constants, inner),
    )
    for native in made:
        if isinstance(native.call, NativeCall):
            native.call.arrays.clear()  # what it was bound to is not there any more
    return body


def _bind_step(
    binder: Binder, runner: Runner, run: RunContext, step: Step, slots: list[Any], buffers: Sequence[Any]
) -> list[NativeStep]:
    operands = [slots[i] for i in step.operands]
    if not step.places and isinstance(step.op, View):
        slots[step.result] = step.op.view(run.xp, operands[0], **step.attrs)
        return []
    if isinstance(step.op, Source):
        slots[step.result] = step.op.tensor(run, step.types[0], **step.attrs)
        return []
    placed = [_placed(type, buffers[at.buffer], at.offset) for type, at in zip(step.types, step.places, strict=True)]
    slots[step.result] = tuple(placed) if step.op.several else placed[0]
    copies = step.op.as_copies(run.xp, operands, slots[step.result], step.attrs)
    if copies is not None:
        return [NativeStep(_copy(runner, *pair), pair[0].nbytes, step.origin) for pair in copies]
    calls = binder.calls(run, step, operands, slots[step.result])
    native = [call for call, _ in calls if isinstance(call, NativeCall | NativeGuard)]
    if len(native) < len(calls):
        raise NotNative
    nanoseconds = (step.flops + sum(type.nbytes for type in step.types)) // max(1, len(native)) + 1
    return [NativeStep(call, nanoseconds, step.origin) for call in native]


def _placed(type: TensorType, memory: Any, offset: int = 0) -> HostArray:
    return np.ndarray(type.shape, type.dtype, memory, offset)


def _copy(runner: Runner, place: HostArray, source: HostArray) -> NativeCall:
    """Of a view to another one, of the same shape and dtype. Raises NotNative."""
    block, axes = _blocks(place, source)
    if len(axes) > MOST_AXES:
        raise NotNative
    entries = np.array([[0, 0, block, len(axes), *[number for axis in axes for number in axis]]], np.int64)
    call = NativeCall(runner.copy, runner.copy_address, min(1, place.size), entries)
    call.point(0, place)
    call.point(1, source)
    return call


def _blocks(place: HostArray, source: HostArray) -> tuple[int, list[tuple[int, int, int]]]:
    """Bytes that lie densely in both, and axes of such blocks: extent, and bytes to the next one in each."""
    axes = [axis for axis in zip(place.shape, place.strides, source.strides, strict=True) if axis[0] != 1]
    block = place.itemsize
    while axes and axes[-1][1:] == (block, block):
        block *= axes.pop()[0]
    return block, axes


def _words(call: NativeCall) -> list[tuple[int, int]]:
    """Where its table points at an array, and the address there."""
    table = call.entries[0]
    return [(table.ctypes.data + 8 * position, int(table[position])) for position in call.arrays]


def _places(words: Sequence[tuple[int, int]], array: HostArray) -> list[Pointer]:
    first = array.ctypes.data
    past = first + max(1, array.nbytes)
    return [Pointer(word, address - first) for word, address in words if first <= address < past]
