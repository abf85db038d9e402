"""What a person may have meant by a word that is not known."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

_COMPARED: Final = 64  # comparing takes the product of the lengths, and no word of ours is as long


def hint(word: str, known: Mapping[str, str], otherwise: str) -> str:
    """A question after the nearest of the known words, as it is shown; `otherwise` where none is near.

    `known` has the words in lower case, each with the way in which it is shown.
    """
    near = get_close_matches(word[:_COMPARED].lower(), known, n=1)
    return f"did you mean {known[near[0]]}?" if near else otherwise
