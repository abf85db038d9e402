"""Client builds for tests, if the machine has the tools for them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clients.conformance.languages import LANGUAGES, Language
from clients.conformance.programs import build
from clients.tools import lacking


def built(name: str) -> Language:
    """Build the client of a language. Skip the test if a tool is missing or a download is needed."""
    language = LANGUAGES[name]
    if absent := lacking(language.needs):
        pytest.skip(f"needs {', '.join(absent)}")
    if not (language.folder / language.fetched).exists():
        pytest.skip(f"needs {language.fetched}: make test-clients")
    with _exclusive_lock(language.folder):
        build(language)
    return language


@contextmanager
def _exclusive_lock(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes of the run, which could read a half-written build."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
