"""Recipes: how a client's package is built, installed in a project, and used by its program."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """Content of a recipe.toml.

    `pack` runs in a copy of the client's sources and writes the package to `{out}`. `install` and `run` run with
    `environment` in a copy of the recipe's folder, `{project}`, which also has the program of the client's page.
    `{version}` is the version of the clients, `{python}` this interpreter.
    """

    package: str
    program: str
    pack: Sequence[str]
    install: Sequence[str]
    run: str
    environment: Mapping[str, str] = field(default_factory=dict)


def recipes() -> dict[str, Recipe]:
    """Return all recipes by language."""
    paths = sorted(HERE.glob("*/recipe.toml"))
    return {path.parent.name: Recipe(**tomllib.loads(path.read_text(encoding="utf-8"))) for path in paths}
