"""Suggestions for misspelled words."""

from __future__ import annotations

from collections.abc import Mapping

from engine.ir.spellings import LOOKED_AT, nearest


def hint(word: str, known: Mapping[str, str], otherwise: str) -> str:
    """Suggest the word closest to `word`, or return `otherwise`. `known` maps lower-case words to their spelling."""
    closest = nearest(word[:LOOKED_AT].lower(), known)
    return f"did you mean {known[closest]}?" if closest else otherwise
