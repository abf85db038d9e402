"""Installed packages: their versions, and the error for an extra that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Final


@contextmanager
def needs_extra(feature: str, library: str, extra: str) -> Iterator[None]:
    """Turn an ImportError in the block into a RuntimeError with one sentence that names the extra to install."""
    try:
        yield
    except ImportError as error:
        raise RuntimeError(f"{feature} needs {library}: pip install 'gradserve[{extra}]' ({error})") from None


def installed_version(*packages: str) -> str:
    """Return the version of the first installed package among `packages`, or "0"."""
    for package in packages:
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return "0"


#: versions for responses, log lines and metrics
VERSIONS: Final[dict[str, str]] = {"gradserve": installed_version("gradserve"), "numpy": installed_version("numpy")}
