"""Installed packages: their versions, and the error for an extra that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs_extra(feature: str, library: str, extra: str) -> Iterator[None]:
    """Import what an extra of the package installs. Raises RuntimeError with one sentence that names the extra."""
    try:
        yield
    except ImportError as error:
        raise RuntimeError(f"{feature} needs {library}: pip install 'gradserve[{extra}]' ({error})") from None
