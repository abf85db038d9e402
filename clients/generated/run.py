"""Generate, compile and run each client against a server: `python -m clients.generated.run [NAME …]`.

What is made lies in build/generated. The programs all print the same two lines.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from clients.generated.recipe import HERE, Recipe, recipes

ROOT: Final = HERE.parents[1]
MADE: Final = ROOT / "build" / "generated"
EXPECTED: Final = "gradient -2 -2\nrefused bad_reference 1\n"
ANNOUNCEMENT: Final = "gradserve listening on "


class Failed(Exception):
    """A command ended in another way than it should, with what it said."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Status 1 where a client fails or cannot be tried."""
    known = recipes()
    parser = argparse.ArgumentParser(prog="clients.generated.run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", choices=[[], *known], metavar="NAME", help=f"of {', '.join(known)}")
    names = parser.parse_args(arguments).names or list(known)
    tools = tools_in(MADE / "tools")
    with server() as url:
        failed = [name for name in names if not tried(name, known[name], tools, url)]
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


@contextmanager
def server() -> Iterator[str]:
    """A server of its own, and its address."""
    arguments = [sys.executable, "-m", "service", "--port", "0", "--device", "cpu", "--state", "memory"]
    with subprocess.Popen([*arguments, "--log-level", "error"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line.startswith(ANNOUNCEMENT):
                raise Failed(f"the server says {line!r}")
            yield line.removeprefix(ANNOUNCEMENT).strip()
        finally:
            process.terminate()


def tried(name: str, recipe: Recipe, tools: Path, url: str) -> bool:
    """Whether it was made and answered; says so."""
    try:
        if recipe.lacking:
            raise Failed(f"needs {', '.join(recipe.lacking)}, which this machine lacks")
        said = made_and_run(name, recipe, tools, url)
        if said != EXPECTED:
            raise Failed(f"printed {said!r} in place of {EXPECTED!r}")
    except Failed as error:
        print(f"FAILED {recipe.title}: {error}", flush=True)
        return False
    print(f"{recipe.title}: compiled, and answered", flush=True)
    return True


def made_and_run(name: str, recipe: Recipe, tools: Path, url: str) -> str:
    """What its program prints. Raises Failed."""
    folder = MADE / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / name, folder)
    with urllib.request.urlopen(f"{url}/{recipe.document}") as answer:
        (folder / recipe.document).write_bytes(answer.read())
    said = ""
    for each in recipe.commands:
        said = command(each.replace("{bin}", shlex.quote(str(tools))).replace("{url}", url), folder)
    return said


def command(line: str, folder: Path) -> str:
    """What a command prints. Raises Failed where its status is not 0."""
    done = subprocess.run(shlex.split(line), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"`{line}` ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
