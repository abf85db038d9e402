"""Compiled kernels whose sin and cos met an argument that is out of range: computed again by other means."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.graph.op import KernelCall
from engine.graph.tensor_type import HostArray
from engine.loops.native import NativeKernel, bind_native
from engine.loops.native_call import NativeCall
from engine.loops.program import Loop, Space
from engine.loops.turns import make_calls

#: binds operands and results to calls that compute the same
Otherwise = Callable[[Sequence[HostArray], Sequence[HostArray]], Sequence[KernelCall]]


def bind_within_range(
    kernel: NativeKernel,
    loop: Loop,
    space: Space,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    threads: int,
    otherwise: Otherwise,
    workspace: HostArray | None = None,
) -> list[KernelCall]:
    """`bind_native` for what `expand_functions` made of a loop, with no wrong result where that `reports_range`.

    `space` and `results` are those of the loop before. After a run that had an argument out of range, `otherwise` binds
    the arrays of that run, and its calls are made.
    """
    if len(loop.results) == len(results):
        return bind_native(kernel, loop, space, operands, results, threads, workspace)
    count = np.zeros((), loop.dtype)
    wider = space._replace(strides=(*space.strides, ()))
    calls = bind_native(kernel, loop, wider, operands, [*results, count], threads, workspace)
    call = calls[0][0]
    # with no rows there is no kernel to call
    again = [(_compute_again, (count, kernel, loop, call, results, otherwise))] if isinstance(call, NativeCall) else []
    return [*calls, *again]


def _compute_again(
    count: HostArray,
    kernel: NativeKernel,
    loop: Loop,
    call: NativeCall,
    results: Sequence[HostArray],
    otherwise: Otherwise,
) -> None:
    if not count:
        return
    operands = [call.arrays[position] for position in kernel.layout.operands]
    # a total and columns may be sums of what the table points at, and never move
    now = [
        call.arrays[position] if not result.adds_up else array
        for position, result, array in zip(kernel.layout.results, loop.results, results, strict=False)
    ]
    make_calls(otherwise(operands, now))
