"""Versions of what computes."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final


def installed_version(*packages: str) -> str:
    """Return the version of the first of these packages that is installed, or "0"."""
    for package in packages:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return "0"


#: versions of what computes, as answers, log lines and metrics state them
VERSIONS: Final[dict[str, str]] = {"gradserve": installed_version("gradserve"), "numpy": installed_version("numpy")}
