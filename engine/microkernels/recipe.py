"""A recipe: the kernels that make a result, one after the other, the memory that they work in, and their calls."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

PlaceKind = Literal["operand", "result", "shared", "own", "address"]


class TableEntryOf(NamedTuple):
    """Kind of thing that an entry of a kernel's table points at.

    An operand or a result, by its number; or `nbytes` of workspace, by their offset in bytes: of all (`shared`), or of
    the thread that runs the kernel (`own`). How large arrays are is known of whoever hands them over. Or what is at an
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
        """Bytes that so many threads work in."""
        return self.shared + threads * self.own
