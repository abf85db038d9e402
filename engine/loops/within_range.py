"""Compiled kernels whose sin and cos met an argument that is out of range: computed again by other means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.graph.op import NONE, KernelCall
from engine.graph.tensor_type import HostArray
from engine.loops.compiled import NativeKernel, bind_native
from engine.loops.program import Loop, Space
from engine.native.fallback import Otherwise, guarded


def range_condition(loop: Loop) -> int:
    """The scalar of which `expand_functions` counts, in the last result of a kernel, how often it is true."""
    found = loop.instructions[loop.results[-1].value]
    if found.op == "row_sum":
        found = loop.instructions[found.args[0]]
    assert found.op == "select"
    return found.args[0]


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
    """`bind_native` for what `expand_functions` made of a kernel, with no wrong result where that `reports_range`.

    `space` and `results` are those before expansion. After a run that had an argument out of range, `otherwise` binds
    the arrays of that run, and its calls are made.
    """
    if len(loop.results) == len(results):
        return bind_native(kernel, loop, space, operands, results, threads, workspace, sums)
    word = np.zeros(1, np.int64)
    count: HostArray = np.ndarray((), loop.dtype, word)
    wider = space._replace(strides=(*space.strides, ()))
    calls = bind_native(kernel, loop, wider, operands, [*results, count], threads, workspace, sums)
    return guarded(calls, word, otherwise, operands, results)
