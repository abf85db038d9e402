"""Recurrences bound as bodies of loops: one native call, which goes through as many steps as a word says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from engine.executors.binding import StepKernel
from engine.executors.native_bodies import BoundBody, Pointer
from engine.executors.regions import NativeStep, alone
from engine.graph.run_context import RunContext
from engine.graph.tensor_type import HostArray
from engine.loops.compiled import block_count
from engine.loops.recurrence import recurrence_layout, recurrence_table
from engine.native.bounds import WATCHED
from engine.native.calls import joined
from engine.native.native_call import NativeCall, NativeGuard
from engine.planning.plan import Step
from engine.planning.step_loop import StepLoop

#: elements of a scalar that are computed in a nanosecond, about
_AT_ONCE: Final = 8


def bind_recurrence(
    kernel: StepKernel,
    loop: StepLoop,
    run: RunContext,
    step: Step,
    operands: Sequence[HostArray],
    out: Sequence[HostArray],
) -> tuple[BoundBody, int]:
    """The body of a scan on operands and results, and the address of the word that says through how many steps.

    Where a step is out of range, the loop is left there.
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
        fed={fed: _pointers(table[0], at, operands[fed], moves) for fed, at, moves in read},
        made=[_pointers(table[0], at, array, moves) for array, at, moves in written],
        results=(),
        nanoseconds=cost,
        run=run,
        kept=steps,
    )
    return body, table.ctypes.data + 8 * layout.steps


def _pointers(table: HostArray, at: int, array: HostArray, entry_at: int) -> list[Pointer]:
    """The word that points at an array, or at an entry of it, and those that say where that begins and ends."""
    nbytes = array[:1].nbytes if table[entry_at] else array.nbytes
    bounds = zip(WATCHED.words(table, at), (0, nbytes), strict=False)
    return [Pointer(int(table.ctypes.data) + 8 * at, 0), *[Pointer(place, offset) for place, offset in bounds]]
