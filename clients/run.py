"""Run all tests of the clients, as `make test-clients` does.

These are each client's own tests, the conformance cases, generated clients, and the check that the playground, a page
that contains the TypeScript client, is what `make playground` writes.

The exit status is 1 if anything fails or needs a tool that this machine lacks. With `--ours`, missing tools are
reported and skipped.
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

#: commands needed to build the playground
PAGE_NEEDS: Final = ("make", "node", "npm")
_TESTS: Final = CLIENTS.parent / "tests" / "clients"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m clients.run", description=__doc__)
    parser.add_argument("--ours", action="store_true", help="our clients alone, those whose tools are here")
    parser.add_argument("--only", action="append", choices=LANGUAGES, help="this language; more than once for several")
    options = parser.parse_args(arguments)
    names = options.only or list(LANGUAGES)
    skipped = {name: missing for name in names if (missing := lacking(LANGUAGES[name].needs))}
    for name, missing in skipped.items():
        print(f"{name}: not tried, since this machine lacks {', '.join(missing)}", flush=True)
    available = [name for name in names if name not in skipped]
    passed = [_passes(name) and not hold(["--only", name]) for name in available]
    if not options.only and not (missing := lacking(PAGE_NEEDS)):
        passed.append(page_is_current())
    elif not options.only:
        print(f"playground: not compared, since this machine lacks {', '.join(missing)}", flush=True)
        skipped["playground"] = missing
    if not (options.ours or options.only):
        passed.append(not generate([]))
    return 0 if all(passed) and (options.ours or not skipped) else 1


def _passes(name: str) -> bool:
    """Build a client, and return whether its own tests and those with servers pass. They print failures themselves."""
    language = LANGUAGES[name]
    commands = (*language.build, *language.tests, with_servers(name))
    return all(subprocess.run(command, cwd=language.folder, check=False).returncode == 0 for command in commands)


def page_is_current() -> bool:
    """Return whether the playground matches its sources; `make playground` prints differences."""
    command = ("make", "--no-print-directory", "playground", "ARGS=--check")
    return subprocess.run(command, cwd=CLIENTS.parent, check=False).returncode == 0


def with_servers(name: str) -> Sequence[str]:
    """Return the command that tests the programs of a client's pages, and the client with servers that are killed."""
    files = (str(_TESTS / "test_pages.py"), str(_TESTS / "test_restart.py"))
    return (sys.executable, "-m", "pytest", "-q", *files, "-k", name)


if __name__ == "__main__":
    sys.exit(main())
