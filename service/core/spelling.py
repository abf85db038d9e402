"""Spelling of words that are not known: what a person may have meant."""

from __future__ import annotations

from collections.abc import Mapping

from engine.ir.spellings import LOOKED_AT, nearest


def hint(word: str, known: Mapping[str, str], otherwise: str) -> str:
    """A question after the nearest of the known words, as it is shown; `otherwise` where none is near.

    `known` has the words in lower case, each with the way in which it is shown.
    """
    near = nearest(word[:LOOKED_AT].lower(), known)
    return f"did you mean {known[near]}?" if near else otherwise
