"""A recipe: how one generator makes a client, how that is compiled, and the program that calls a server by it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """What stands in a folder's recipe.toml. Commands run in a copy of the folder which has the document, too.

    One that takes long is run where it is asked for, `by_name_only`. `{bin}` stands for the folder of the generators
    that are written in Python, `{url}` for the server's address.
    """

    title: str
    document: str
    needs: Sequence[str]
    generate: str
    check: Sequence[str]
    run: str
    prepare: Sequence[str] = ()
    by_name_only: bool = False


def recipes() -> dict[str, Recipe]:
    """All of them by their folders' names."""
    paths = sorted(HERE.glob("*/recipe.toml"))
    return {path.parent.name: Recipe(**tomllib.loads(path.read_text(encoding="utf-8"))) for path in paths}
