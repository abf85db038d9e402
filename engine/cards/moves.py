"""Moves on a card: elements that lie in one way, laid in another; those that were computed wider are rounded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.cards.card_recipe import CardPlace, LaunchPhase
from engine.cards.card_text import are_addressable, by_items, is_wide, unravelled
from engine.microkernels.axes import merged_axes

#: entries of a table before the axes
_HEAD: Final = 3

_MOVE: Final = """\
KERNEL {name}(GIVEN) {{
const long long* const table = TABLE;
EACH_ITEM(item, table[2]) {{
const char* from = (const char*)table[0]; char* to = (char*)table[1];
{places}
*(E*)to = {value};
}}
}}
"""
_VALUES: Final = {
    "move": "*(const E*)from",
    "round_off": "NARROW(*(const F*)from)",
    "clear": "NARROW((F)0)",
}


class Move(NamedTuple):
    """Extents, and bytes to step along them: where elements are read, and where they are written."""

    extents: tuple[int, ...]
    read: tuple[int, ...]
    written: tuple[int, ...]

    @property
    def items(self) -> int:
        """Elements."""
        return math.prod(self.extents)

    @property
    def is_wide(self) -> bool:
        """Whether 32 bits do not count them."""
        return is_wide(self.items)

    @property
    def is_addressable(self) -> bool:
        """Whether all offsets fit their words."""
        return all(are_addressable(list(zip(self.extents, s, strict=True))) for s in (self.read, self.written))

    def merged(self) -> Move:
        """The same with as few axes as can be."""
        axes = merged_axes(self.extents, [self.read, self.written])
        read, written = (tuple(steps[k] for _, steps in axes) for k in range(2))
        return Move(tuple(extent for extent, _ in axes), read, written)

    def phase(self, kernel: str, entries: int, read: CardPlace, written: CardPlace) -> LaunchPhase:
        """The launch of one of `move_kernels`, of as many axes."""
        return by_items(
            kernel, self.items, entries, read, written, self.items, *self.extents, *self.read, *self.written
        )


def move_entries(axes: int) -> int:
    """Entries of the table of a move."""
    return _HEAD + 3 * axes


def move_kernels(axes: int, names: Sequence[str]) -> str:
    """Kernels for moves of so many axes: `move` copies bits, `round_off` rounds, `clear` reads nothing."""
    places = unravelled("item", range(_HEAD, _HEAD + axes), {"from": _HEAD + axes, "to": _HEAD + 2 * axes})
    return "".join(_MOVE.format(name=name, places=places, value=_VALUES[name]) for name in names)
