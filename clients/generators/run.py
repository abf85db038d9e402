"""Generate, compile and run each client against a server: `python -m clients.generators.run [NAME …]`.

What is made lies in build/generated. The programs all print the same three lines. With `--future` each runs once more,
against a server that answers with fields and codes that the document does not know.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from clients.conformance.proxy import growing_proxy
from clients.conformance.rewriting import CODE
from clients.generators.recipe import HERE, Recipe, recipes
from clients.tools import Failed, command, lacking
from examples.server import running_server

ROOT: Final = HERE.parents[1]
MADE: Final = ROOT / "build" / "generated"
EXPECTED: Final = "gradient -2 -2\nfunctions 15 -26\nrefused {code} 1\n"
REFUSED: Final = "bad_reference"


def main(arguments: Sequence[str] | None = None) -> int:
    """Status 1 where a client fails or cannot be tried."""
    known = recipes()
    parser = argparse.ArgumentParser(prog="clients.generators.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *known], metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--future", action="store_true", help="ask a server that has grown, too")
    stated = parser.parse_args(arguments)
    names = stated.names or [name for name, recipe in known.items() if not recipe.by_name_only]
    tools = tools_in(MADE / "tools")
    with running_server("--device", "cpu") as url, growing_proxy(url) as tomorrow:
        asked = {url: REFUSED, tomorrow: CODE + REFUSED} if stated.future else {url: REFUSED}
        failed = [name for name in names if not tried(name, known[name], tools, asked)]
    print(f"{len(names) - len(failed)} of {len(names)} generated clients compile and are answered")
    return bool(failed)


def tools_in(folder: Path) -> Path:
    """The commands of an environment that has the generators written in Python."""
    required = HERE / "requirements.txt"
    mark = folder / required.name
    if not mark.exists() or mark.read_bytes() != required.read_bytes():
        command(f"{shlex.quote(sys.executable)} -m venv --clear {shlex.quote(str(folder))}", ROOT)
        command(f"{shlex.quote(str(folder / 'bin/pip'))} install --quiet -r {shlex.quote(str(required))}", ROOT)
        shutil.copy(required, mark)
    return folder / "bin"


def tried(name: str, recipe: Recipe, tools: Path, asked: Mapping[str, str]) -> bool:
    """Whether it was made and answered by each server, whose code of the refusal is stated; says so."""
    try:
        if absent := lacking(recipe.needs):
            raise Failed(f"needs {', '.join(absent)}, which this machine lacks")
        folder = made(name, recipe, tools, next(iter(asked)))
        for url, code in asked.items():
            said = command(with_places(recipe.run, tools, url), folder)
            if said != EXPECTED.format(code=code):
                raise Failed(f"printed {said!r} in place of {EXPECTED.format(code=code)!r}")
    except Failed as error:
        print(f"FAILED {recipe.title}: {error}", flush=True)
        return False
    print(f"{recipe.title}: compiled, and answered", flush=True)
    return True


def made(name: str, recipe: Recipe, tools: Path, url: str) -> Path:
    """The folder with the client and its program, compiled. Raises Failed."""
    folder = MADE / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / name, folder)
    with urllib.request.urlopen(f"{url}/{recipe.document}") as answer:
        (folder / recipe.document).write_bytes(answer.read())
    for each in (*recipe.prepare, recipe.generate, *recipe.check):
        command(with_places(each, tools, url), folder)
    return folder


def with_places(line: str, tools: Path, url: str) -> str:
    """A command with what its names in braces stand for."""
    return line.replace("{bin}", shlex.quote(str(tools))).replace("{url}", url)


if __name__ == "__main__":
    sys.exit(main())
