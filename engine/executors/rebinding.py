"""Steps on arrays that come and go with runs: native calls are pointed at them, and others are bound anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.executors.segments import Segment, StepCalls
from engine.graph.op import Array, KernelCall
from engine.native.native_call import NativeCall, NativeGuard, TablePlace, places_of
from engine.planning.plan import Step

#: binds a step: operands and result to calls
Bind = Callable[[Step, Sequence[Array], Array], Sequence[KernelCall]]


class _Move(NamedTuple):
    """An array of a slot, one of several where `which` says so, and where native calls point at it."""

    slot: int
    which: int | None
    places: Sequence[TablePlace]


class RebindingStep:
    """A step whose operands or result do not last, in its segment."""

    __slots__ = ("_member", "_moves", "_segment", "_step")

    def __init__(self, step: Step, segment: Segment, member: StepCalls) -> None:
        self._step, self._segment, self._member = step, segment, member
        self._moves: list[_Move] | None = None

    def begin(self, slots: Sequence[Array], bind: Bind) -> None:
        """Bind it for the first time, before its segment is gathered, to the arrays that are in the slots now."""
        step = self._step
        # A view of each: two operands that happen to be one array now, need not be the next time.
        operands = [slots[i].view() for i in step.operands]
        out = slots[step.result]
        results = [array.view() for array in (out if isinstance(out, tuple) else [out])]
        calls = bind(step, operands, tuple(results) if isinstance(out, tuple) else results[0])
        moves = [_Move(i, None, places_of(array, calls)) for i, array in zip(step.operands, operands, strict=True)]
        for k, array in enumerate(results):
            moves.append(_Move(step.result, k if isinstance(out, tuple) else None, places_of(array, calls)))
        if all(map(_can_follow, calls)) and all(move.places for move in moves):
            self._moves = moves
        self._member.calls, self._member.renewed = calls, self._moves is None

    def renew(self, slots: Sequence[Array], bind: Bind) -> None:
        """Have it use the arrays that are in the slots now."""
        if self._moves is None:
            step = self._step
            self._segment.renew(self._member, bind(step, [slots[i] for i in step.operands], slots[step.result]))
            return
        for slot, which, places in self._moves:
            array = slots[slot] if which is None else slots[slot][which]
            for call, position in places:
                call.point(position, array)

    def forget(self) -> None:
        """Let go of the arrays, until `renew`."""
        if self._moves is None:
            self._segment.renew(self._member)
        else:
            for move in self._moves:
                for call, position in move.places:
                    call.forget(position)


def _can_follow(call: KernelCall) -> bool:
    """Whether a call says where it points at what."""
    function = call[0]
    return isinstance(function, NativeGuard) or (isinstance(function, NativeCall) and bool(function.arrays))
