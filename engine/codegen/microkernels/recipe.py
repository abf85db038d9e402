"""Recipes: the kernels that compute a result, one after the other, the memory that they use, and their native calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from engine.codegen.kernels.compiled import WORTH_THREADS
from engine.codegen.native.native_call import BOUNDS, LoadedKernel, NativeCall, Otherwise, guarded
from engine.ir.op import KernelCall
from engine.ir.tensor_type import HostArray

PlaceKind = Literal["operand", "result", "shared", "own", "address"]


class TableEntryOf(NamedTuple):
    """Meaning of an entry of a kernel's table.

    It is the address of an operand or a result, by its number; or of `nbytes` of workspace at the byte offset `number`,
    in the memory that all threads share (`shared`) or that each thread has (`own`). Arrays know their own size. An
    `address` is that of an object of this process, `number`. It is in the table so that the kernel's text does not
    depend on it.
    """

    kind: PlaceKind
    number: int
    nbytes: int = 0


#: word in which a `checked` recipe reports that its result is invalid
FLAG: Final = TableEntryOf("shared", 0, 8)


class KernelPhase(NamedTuple):
    """`void kernel(int64 first, int64 past, const int64* table)` as LLVM IR, and its arguments.

    It computes the items first to past − 1. Items may be computed in any order, on any thread and in any grouping, with
    the same bits. All items are computed before the next phase begins. `work` is the number of FLOPs, or of elements
    moved.
    """

    text: str
    items: int
    places: tuple[TableEntryOf, ...]
    work: int


class Recipe(NamedTuple):
    """Phases to run in order. Workspace sizes are multiples of `ALIGNMENT` bytes.

    If `checked`, the first eight bytes of the shared workspace are an int64 that is 0 before and after a run, unless
    the result is invalid; the op then computes it in another way.
    """

    phases: tuple[KernelPhase, ...]
    shared: int = 0
    own: int = 0
    checked: bool = False

    def workspace(self, threads: int) -> int:
        """Return the bytes of workspace for a number of threads."""
        return self.shared + threads * self.own


def bind_recipe(
    codes: Sequence[LoadedKernel],
    recipe: Recipe,
    operands: Sequence[HostArray],
    result: HostArray,
    threads: int,
    workspace: HostArray,
    otherwise: Otherwise,
) -> list[KernelCall]:
    """Bind the calls that compute `result` from `operands`, which have the types and strides that the recipe is for.

    They use `workspace`, `recipe.workspace(threads)` bytes, which others may use between two runs. If a `checked`
    recipe reports an invalid result, `otherwise` binds the current arrays.
    """
    calls: list[KernelCall] = []
    for phase, code in zip(recipe.phases, codes, strict=True):
        thread_count = min(threads, phase.items) if phase.work >= WORTH_THREADS else 1
        entries = BOUNDS.tables(thread_count, len(phase.places))
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
                # The threads' own workspaces follow the shared one.
                thread_starts = start + recipe.shared + recipe.own * np.arange(len(call.entries))
                call.place(position, thread_starts + number, min(nbytes, recipe.own - number))
