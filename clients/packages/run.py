"""Test the clients' packages: `python -m clients.packages.run [LANGUAGE …]`.

Each package is built from a copy of the client's sources, in build/packages, and installed in a project outside the
checkout, whose program requests a gradient from a server. The exit status is 1 if a package fails or needs a tool that
this machine lacks.
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
#: gradient of sum(tanh(x · w)), which each language prints in its own format
GRADIENT: Final = {0.786, 0.84}
_PROGRAM: Final = re.compile(r"^<!-- test: \w+ -->\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
_NUMBER: Final = re.compile(r"\d+\.\d+")
#: build outputs in clients' folders, which are not sources
_BUILD_OUTPUTS: Final = shutil.ignore_patterns("build", "target", "node_modules", "*.egg-info", "__pycache__", ".*")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return 1 if a package fails or cannot be tested."""
    known = recipes()
    parser = argparse.ArgumentParser(prog="clients.packages.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *known], metavar="LANGUAGE", help=f"of {', '.join(known)}")
    names = parser.parse_args(arguments).names or list(known)
    with running_server("--device", "cpu") as url:
        failed = [name for name in names if not tried(name, known[name], url)]
    return bool(failed)


def tried(name: str, recipe: Recipe, url: str) -> bool:
    """Return whether the package is built, installed and used successfully, and print the result."""
    try:
        if missing := lacking(LANGUAGES[name].needs):
            raise Failed(f"needs {', '.join(missing)}, which this machine lacks")
        with tempfile.TemporaryDirectory() as folder:
            package, output = used(name, recipe, Path(folder), url)
    except Failed as error:
        print(f"FAILED {name}: {error}", flush=True)
        return False
    size = package.stat().st_size // 1024
    print(f"{name}: {package.name}, {size} KiB, is installed and prints {' '.join(output.split())}", flush=True)
    return True


def used(name: str, recipe: Recipe, folder: Path, url: str) -> tuple[Path, str]:
    """Return the package, and the output of a program that uses it. Raises Failed."""
    variables = {
        "out": str(PACKAGES / name),
        "version": version(),
        "python": sys.executable,
        "project": str(folder / "user"),
    }
    environment = {key: value.format(**variables) for key, value in recipe.environment.items()}
    pack(name, recipe, folder / "sources", variables)
    project = Path(variables["project"])
    shutil.copytree(HERE / name, project)
    (project / recipe.program).parent.mkdir(parents=True, exist_ok=True)
    (project / recipe.program).write_text(ten_lines(name).replace(LOCAL, url), encoding="utf-8")
    for line in recipe.install:
        command(line.format(**variables), project, environment)
    output = command(recipe.run.format(**variables), project, environment)
    if not {round(float(number), 3) for number in _NUMBER.findall(output)} >= GRADIENT:
        raise Failed(f"printed {output!r}, which is not the gradient {GRADIENT}")
    return PACKAGES / name / recipe.package.format(**variables), output


def ten_lines(name: str) -> str:
    """Return the first program of the client's page."""
    page = (LANGUAGES[name].folder / "README.md").read_text(encoding="utf-8")
    return str(_PROGRAM.findall(page)[0])


def pack(name: str, recipe: Recipe, sources: Path, variables: Mapping[str, str]) -> None:
    """Build the package from a copy of the client's sources and the licence. Raises Failed."""
    shutil.rmtree(variables["out"], ignore_errors=True)
    Path(variables["out"]).mkdir(parents=True)
    shutil.copytree(LANGUAGES[name].folder, sources, ignore=_BUILD_OUTPUTS)
    shutil.copy(ROOT / "LICENSE", sources)
    for line in recipe.pack:
        command(line.format(**variables), sources, {"PYTHONPATH": str(ROOT)})


def version() -> str:
    """Return the version of the server, which is that of all clients."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


if __name__ == "__main__":
    sys.exit(main())
