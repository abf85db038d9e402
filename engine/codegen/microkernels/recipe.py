"""A recipe: the kernels that make a result, one after the other, the memory that they work in, and their calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from engine.codegen.kernels.compiled import WORTH_THREADS
from engine.codegen.native.native_call import WATCHED, LoadedKernel, NativeCall, Otherwise, guarded
from engine.ir.op import KernelCall
from engine.ir.tensor_type import HostArray

PlaceKind = Literal["operand", "result", "shared", "own", "address"]


class TableEntryOf(NamedTuple):
    """Target of an entry of a kernel's table.

    An operand or a result, by its number; or `nbytes` of workspace, by their offset in bytes: of all (`shared`), or of
    the thread that runs the kernel (`own`). Arrays know their own size. Or what is at an
    address of this process, `number`, which is handed on and not looked at: so the text does not depend on it.
    """

    kind: PlaceKind
    number: int
    nbytes: int = 0


#: where a recipe that is `checked` says whether it holds
FLAG: Final = TableEntryOf("shared", 0, 8)


class KernelPhase(NamedTuple):
    """`void kernel(int64 first, int64 past, const int64* table)` as LLVM IR, and what it is called with.

    It makes the items first to past, in any order and on any thread: which ones are made together changes no bit. All
    items are made before the next phase begins. `work` is the number of FLOPs, or of elements that are moved.
    """

    text: str
    items: int
    places: tuple[TableEntryOf, ...]
    work: int


class Recipe(NamedTuple):
    """Phases to run, in order. Workspaces are multiples of `ALIGNMENT` bytes.

    With `checked`, the first eight bytes of the shared workspace are an int64 that is 0 before and after, unless the
    result is not to be used: then the op computes it in another way.
    """

    phases: tuple[KernelPhase, ...]
    shared: int = 0
    own: int = 0
    checked: bool = False

    def workspace(self, threads: int) -> int:
        """Count the bytes that so many threads work in."""
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
    """Bind the calls that compute `result` from `operands`, of the types and strides that the recipe is for.

    They work in `workspace`, `recipe.workspace(threads)` bytes, which others may use between two runs. If a recipe that
    is `checked` finds that it does not hold, `otherwise` binds the arrays as they lie then.
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
