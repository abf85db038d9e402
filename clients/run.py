"""`make test-clients`: our clients' own tests, the cases that all of them are held to, generated ones, the page.

The page is the playground, which has the TypeScript client in it: it has to be what `make playground` writes.

Ends with 1 where something fails, or needs what this machine lacks; `--ours` passes over what it lacks, and says so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from clients.conformance.languages import CLIENTS, LANGUAGES
from clients.conformance.run import main as hold
from clients.generators.run import main as generate
from clients.tools import lacking

#: what building the playground takes
PAGE_NEEDS: Final = ("make", "node", "npm")
_TESTS: Final = CLIENTS.parent / "tests" / "clients"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m clients.run", description=__doc__)
    parser.add_argument("--ours", action="store_true", help="our clients alone, those whose tools are here")
    parser.add_argument("--only", action="append", choices=LANGUAGES, help="this language; more than once for several")
    stated = parser.parse_args(arguments)
    names = stated.only or list(LANGUAGES)
    passed_over = {name: absent for name in names if (absent := lacking(LANGUAGES[name].needs))}
    for name, absent in passed_over.items():
        print(f"{name}: not tried, since this machine lacks {', '.join(absent)}", flush=True)
    found = [name for name in names if name not in passed_over]
    passed = [_passes(name) and not hold(["--only", name]) for name in found]
    if not stated.only and not (absent := lacking(PAGE_NEEDS)):
        passed.append(page_is_current())
    elif not stated.only:
        print(f"playground: not compared, since this machine lacks {', '.join(absent)}", flush=True)
        passed_over["playground"] = absent
    if not (stated.ours or stated.only):
        passed.append(not generate([]))
    return 0 if all(passed) and (stated.ours or not passed_over) else 1


def _passes(name: str) -> bool:
    """Whether a client is made, and its own tests and those with servers pass; they say which do not."""
    language = LANGUAGES[name]
    commands = (*language.build, *language.tests, with_servers(name))
    return all(subprocess.run(command, cwd=language.folder, check=False).returncode == 0 for command in commands)


def page_is_current() -> bool:
    """Whether the playground is what its sources make of the client; `make playground` says what is not."""
    command = ("make", "--no-print-directory", "playground", "ARGS=--check")
    return subprocess.run(command, cwd=CLIENTS.parent, check=False).returncode == 0


def with_servers(name: str) -> Sequence[str]:
    """What runs the programs of a client's pages, and kills servers that it talks to."""
    files = (str(_TESTS / "test_pages.py"), str(_TESTS / "test_restart.py"))
    return (sys.executable, "-m", "pytest", "-q", *files, "-k", name)


if __name__ == "__main__":
    sys.exit(main())
