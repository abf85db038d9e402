"""Print what gradserve depends on, one requirement a line, or what one of its extras adds.

Read from pyproject.toml alone, so that an image can install it in a layer of its own, before the code is there.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path


def dependencies(text: str, extras: Sequence[str] = ()) -> list[str]:
    """The requirements in a pyproject.toml; with extras, what these add. KeyError names an extra that is not there."""
    project = tomllib.loads(text)["project"]
    if not extras:
        return list(project["dependencies"])
    return [requirement for extra in extras for requirement in project["optional-dependencies"][extra]]


if __name__ == "__main__":
    given = Path("pyproject.toml").read_text(encoding="utf-8")
    sys.stdout.write("".join(f"{line}\n" for line in dependencies(given, sys.argv[1:])))
