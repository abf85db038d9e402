"""The command `gradserve`, which is also `python -m service`.

The packages have plain names, and another project's `schemas.py` or `engine/` may stand before them on Python's path.
That is looked for before they are imported. (Another `service` there would run in place of this file.)
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run the command; with status 2 and a sentence where a package of ours is hidden."""
    for package in ("engine", "schemas"):
        if found := stranger(package):
            sys.stderr.write(
                f"gradserve: {found} stands before gradserve's own {package} on Python's path; "
                "start gradserve in another folder, or install it in an environment of its own\n"
            )
            raise SystemExit(2)
    from service.cli import main as command  # noqa: PLC0415 - imports the packages that have just been looked for

    command()


def stranger(package: str) -> str | None:
    """The file or folder that would be imported in place of this package beside ours; None where it is ours."""
    spec = find_spec(package)
    if spec is None:
        return None  # importing it says so
    place = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
    return None if HERE.with_name(package) in Path(place).resolve().parents else place


if __name__ == "__main__":
    main()
