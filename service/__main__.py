"""The command `gradserve`, which is also `python -m service`.

The packages have plain names, and another project's `schemas.py` or `engine/` may come first on Python's path. This is
checked before they are imported. (Another `service` would run instead of this file.)
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run the command. Exit with status 2 and an explanation if another package hides one of ours."""
    for package in ("engine", "schemas"):
        if location := find_foreign_package(package):
            sys.stderr.write(
                f"gradserve: Python finds {location} before gradserve's own package {package}; "
                "start gradserve in another folder, or install it in a separate environment\n"
            )
            raise SystemExit(2)
    from service.cli import main as command  # noqa: PLC0415 - imports the packages that have just been checked

    command()


def find_foreign_package(package: str) -> str | None:
    """Return the file or folder that Python would import instead of our package, None if it is ours."""
    spec = find_spec(package)
    if spec is None:
        return None  # the import raises an error
    location = spec.origin or next(iter(spec.submodule_search_locations or ()), "")
    return None if HERE.with_name(package) in Path(location).resolve().parents else location


if __name__ == "__main__":
    main()
