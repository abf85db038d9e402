"""Recipes bound to their memory: the calls that make a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.graph.op import KernelCall
from engine.graph.tensor_type import HostArray
from engine.loops.compiled import WORTH_THREADS
from engine.microkernels.recipe import KernelPhase, Recipe
from engine.native.bounds import WATCHED
from engine.native.fallback import Otherwise, guarded
from engine.native.native_call import LoadedKernel, NativeCall


def bind_recipe(
    codes: Sequence[LoadedKernel],
    recipe: Recipe,
    operands: Sequence[HostArray],
    result: HostArray,
    threads: int,
    workspace: HostArray,
    otherwise: Otherwise,
) -> list[KernelCall]:
    """The calls that compute `result` from `operands`, of the types and strides that the recipe is for.

    They work in `workspace`, `recipe.workspace(threads)` bytes, which others may use between two runs. `otherwise`
    binds them, as they lie then, where a recipe that is `checked` finds that it does not hold.
    """
    calls: list[KernelCall] = []
    for phase, code in zip(recipe.phases, codes, strict=True):
        taking_part = min(threads, phase.items) if phase.work >= WORTH_THREADS else 1
        entries = WATCHED.tables(taking_part, len(phase.places))
        call = NativeCall(code.function, code.address, phase.items, entries, (code, workspace))
        _point(call, phase, recipe, operands, result, workspace)
        calls.append((call, ()))
    return guarded(calls, workspace[:8].view(np.int64), otherwise, operands, [result]) if recipe.checked else calls


def _point(
    call: NativeCall,
    phase: KernelPhase,
    recipe: Recipe,
    operands: Sequence[HostArray],
    result: HostArray,
    workspace: HostArray,
) -> None:
    start = workspace.ctypes.data
    for position, (kind, number, nbytes) in enumerate(phase.places):
        match kind:
            case "operand":
                call.point(position, operands[number])
            case "result":
                call.point(position, result)
            case "shared":
                call.place(position, start + number, min(nbytes, recipe.shared - number))
            case "address":
                call.place(position, number, 0)
            case "own":
                owns = start + recipe.shared + recipe.own * np.arange(len(call.entries))
                call.place(position, owns + number, min(nbytes, recipe.own - number))
