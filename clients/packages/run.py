"""Packages of our clients: `python -m clients.packages.run [LANGUAGE …]`.

Each is made of a copy of the client's sources, in build/packages, and installed in a project outside the checkout,
whose program asks a started server for a gradient. Ends with 1 where one fails, or needs what this machine lacks.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from clients.conformance.languages import LANGUAGES
from clients.packages.recipe import HERE, Recipe, recipes
from clients.tools import Failed, command, lacking
from examples.server import running_server

ROOT: Final = HERE.parents[1]
PACKAGES: Final = ROOT / "build" / "packages"
LOCAL: Final = "http://127.0.0.1:8000"
#: of sum(tanh(x · w)), which each language prints in its own way
GRADIENT: Final = {0.786, 0.84}
_PROGRAM: Final = re.compile(r"^<!-- test: \w+ -->\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NUMBER: Final = re.compile(r"\d+\.\d+")
#: what is made in clients' folders, and not part of their sources
_MADE: Final = shutil.ignore_patterns("build", "target", "node_modules", "*.egg-info", "__pycache__", ".*")


def main(arguments: Sequence[str] | None = None) -> int:
    """Status 1 where a package fails or cannot be tried."""
    known = recipes()
    parser = argparse.ArgumentParser(prog="clients.packages.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *known], metavar="LANGUAGE", help=f"of {', '.join(known)}")
    names = parser.parse_args(arguments).names or list(known)
    with running_server("--device", "cpu") as url:
        failed = [name for name in names if not tried(name, known[name], url)]
    return bool(failed)


def tried(name: str, recipe: Recipe, url: str) -> bool:
    """Whether the package was made, and a project with it was answered; says so."""
    try:
        if absent := lacking(LANGUAGES[name].needs):
            raise Failed(f"needs {', '.join(absent)}, which this machine lacks")
        with tempfile.TemporaryDirectory() as folder:
            package, said = used(name, recipe, Path(folder), url)
    except Failed as error:
        print(f"FAILED {name}: {error}", flush=True)
        return False
    size = package.stat().st_size // 1024
    print(f"{name}: {package.name}, {size} KiB, is installed and prints {' '.join(said.split())}", flush=True)
    return True


def used(name: str, recipe: Recipe, folder: Path, url: str) -> tuple[Path, str]:
    """The package, and what a program prints that uses it. Raises Failed."""
    places = {
        "out": str(PACKAGES / name),
        "version": version(),
        "python": sys.executable,
        "project": str(folder / "user"),
    }
    environment = {key: value.format(**places) for key, value in recipe.environment.items()}
    pack(name, recipe, folder / "sources", places)
    project = Path(places["project"])
    shutil.copytree(HERE / name, project)
    (project / recipe.program).parent.mkdir(parents=True, exist_ok=True)
    (project / recipe.program).write_text(ten_lines(name).replace(LOCAL, url), encoding="utf-8")
    for line in recipe.install:
        command(line.format(**places), project, environment)
    said = command(recipe.run.format(**places), project, environment)
    if not {round(float(number), 3) for number in _NUMBER.findall(said)} >= GRADIENT:
        raise Failed(f"printed {said!r}, which is not the gradient {GRADIENT}")
    return PACKAGES / name / recipe.package.format(**places), said


def ten_lines(name: str) -> str:
    """The first program of the client's page, which is a whole one."""
    page = (LANGUAGES[name].folder / "README.md").read_text(encoding="utf-8")
    return str(_PROGRAM.findall(page)[0])


def pack(name: str, recipe: Recipe, sources: Path, places: Mapping[str, str]) -> None:
    """Make the package of a copy of the client's sources, which has the licence, too. Raises Failed."""
    shutil.rmtree(places["out"], ignore_errors=True)
    Path(places["out"]).mkdir(parents=True)
    shutil.copytree(LANGUAGES[name].folder, sources, ignore=_MADE)
    shutil.copy(ROOT / "LICENSE", sources)
    for line in recipe.pack:
        command(line.format(**places), sources, {"PYTHONPATH": str(ROOT)})


def version() -> str:
    """The server's, which is that of all clients."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


if __name__ == "__main__":
    sys.exit(main())
