"""Suggestions for misspelt words."""

from __future__ import annotations

from collections.abc import Mapping

from engine.ir.spellings import LOOKED_AT, nearest


def hint(word: str, known: Mapping[str, str], otherwise: str) -> str:
    """Suggest the nearest of the known words, in lower case, each with its spelling; `otherwise` if none is near."""
    near = nearest(word[:LOOKED_AT].lower(), known)
    return f"did you mean {known[near]}?" if near else otherwise
