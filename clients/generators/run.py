"""Generate, compile and run each client against a server: `python -m clients.generators.run [NAME …]`.

Output is in build/generated. All programs print the same four lines. With `--future` each program also runs against a
server whose responses have fields and codes that the document does not know.
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
GENERATED: Final = ROOT / "build" / "generated"
EXPECTED: Final = "gradient -2 -2\nnulls -2 -2\nfunctions 15 -26\nrefused {code} 1\n"
REFUSED: Final = "bad_reference"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return 1 if a client fails or cannot be tested."""
    known = recipes()
    parser = argparse.ArgumentParser(prog="clients.generators.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *known], metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--future", action="store_true", help="ask a server that has grown, too")
    options = parser.parse_args(arguments)
    names = options.names or [name for name, recipe in known.items() if not recipe.by_name_only]
    tools = tools_in(GENERATED / "tools")
    with running_server("--device", "cpu") as url, growing_proxy(url) as future_url:
        expected_codes = {url: REFUSED, future_url: CODE + REFUSED} if options.future else {url: REFUSED}
        failed = [name for name in names if not tried(name, known[name], tools, expected_codes)]
    print(f"{len(names) - len(failed)} of {len(names)} generated clients compile and are answered")
    return bool(failed)


def tools_in(folder: Path) -> Path:
    """Return the folder of commands of an environment with the generators written in Python, created if it is stale."""
    required = HERE / "requirements.txt"
    installed = folder / required.name
    if not installed.exists() or installed.read_bytes() != required.read_bytes():
        command(f"{shlex.quote(sys.executable)} -m venv --clear {shlex.quote(str(folder))}", ROOT)
        command(f"{shlex.quote(str(folder / 'bin/pip'))} install --quiet -r {shlex.quote(str(required))}", ROOT)
        shutil.copy(required, installed)
    return folder / "bin"


def tried(name: str, recipe: Recipe, tools: Path, expected_codes: Mapping[str, str]) -> bool:
    """Return whether a client is generated and works with each server, and print the result.

    `expected_codes` maps the servers' addresses to the code of their error.
    """
    try:
        if missing := lacking(recipe.needs):
            raise Failed(f"needs {', '.join(missing)}, which this machine lacks")
        folder = made(name, recipe, tools, next(iter(expected_codes)))
        for url, code in expected_codes.items():
            output = command(with_places(recipe.run, tools, url), folder)
            if output != EXPECTED.format(code=code):
                raise Failed(f"printed {output!r} in place of {EXPECTED.format(code=code)!r}")
    except Failed as error:
        print(f"FAILED {recipe.title}: {error}", flush=True)
        return False
    print(f"{recipe.title}: compiled, and answered", flush=True)
    return True


def made(name: str, recipe: Recipe, tools: Path, url: str) -> Path:
    """Generate and compile a client and its program, and return their folder. Raises Failed."""
    folder = GENERATED / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / name, folder)
    with urllib.request.urlopen(f"{url}/{recipe.document}") as response:
        (folder / recipe.document).write_bytes(response.read())
    for each in (*recipe.prepare, recipe.generate, *recipe.check):
        command(with_places(each, tools, url), folder)
    return folder


def with_places(line: str, tools: Path, url: str) -> str:
    """Substitute the placeholders of a command."""
    return line.replace("{bin}", shlex.quote(str(tools))).replace("{url}", url)


if __name__ == "__main__":
    sys.exit(main())
