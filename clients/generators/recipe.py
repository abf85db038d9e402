"""Recipes: how a generator makes a client, how it is compiled, and the program that calls a server with it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """Content of a recipe.toml. Commands run in a copy of the folder that also contains the OpenAPI document.

    A slow recipe is `by_name_only`: it runs only if it is named. `{bin}` is the folder of the generators written in
    Python, `{url}` the server's address.
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
    """Return all recipes by the names of their folders."""
    paths = sorted(HERE.glob("*/recipe.toml"))
    return {path.parent.name: Recipe(**tomllib.loads(path.read_text(encoding="utf-8"))) for path in paths}
