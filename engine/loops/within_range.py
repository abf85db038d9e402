"""Compiled kernels whose sin and cos met an argument that is out of range: computed again by other means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from engine.graph.op import NONE, KernelCall
from engine.graph.tensor_type import HostArray
from engine.loops.compiled import NativeKernel, bind_native
from engine.loops.program import Loop, Space
from engine.native.native_call import FollowedArray, NativeGuard, followed
from engine.native.turns import make_calls

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
    sums: Mapping[str, NativeKernel] = NONE,
) -> list[KernelCall]:
    """`bind_native` for what `expand_functions` made of a loop, with no wrong result where that `reports_range`.

    `space` and `results` are those of the loop before. After a run that had an argument out of range, `otherwise` binds
    the arrays of that run, and its calls are made.
    """
    if len(loop.results) == len(results):
        return bind_native(kernel, loop, space, operands, results, threads, workspace, sums)
    word = np.zeros(1, np.int64)
    count: HostArray = np.ndarray((), loop.dtype, word)
    wider = space._replace(strides=(*space.strides, ()))
    calls = bind_native(kernel, loop, wider, operands, [*results, count], threads, workspace, sums)
    read, written = ([followed(array, calls) for array in arrays] for arrays in (operands, results))
    return [*calls, (NativeGuard(word, (_compute_again, (otherwise, read, written))), ())]


def _compute_again(otherwise: Otherwise, read: Sequence[FollowedArray], written: Sequence[FollowedArray]) -> None:
    """With the arrays as they lie now."""
    make_calls(otherwise([x.now for x in read], [x.now for x in written]))
