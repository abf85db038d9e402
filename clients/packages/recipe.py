"""A recipe: how a client's package is made, how a project of its users takes it, and how its program is run."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """What stands in a folder's recipe.toml.

    `pack` runs in a copy of the client's sources and leaves the package in `{out}`; `install` and `run` run in a copy
    of the recipe's folder, `{project}`, which has the program of the client's page, too, with `environment`.
    `{version}` stands for the clients', `{python}` for this interpreter.
    """

    package: str
    program: str
    pack: Sequence[str]
    install: Sequence[str]
    run: str
    environment: Mapping[str, str] = field(default_factory=dict)


def recipes() -> dict[str, Recipe]:
    """All of them by their languages."""
    paths = sorted(HERE.glob("*/recipe.toml"))
    return {path.parent.name: Recipe(**tomllib.loads(path.read_text(encoding="utf-8"))) for path in paths}
