"""A client as tests take it: built, where the machine has what that needs."""

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
    """The client of a language. Skips the test that asks where it cannot be built without fetching anything."""
    language = LANGUAGES[name]
    if absent := lacking(language.needs):
        pytest.skip(f"needs {', '.join(absent)}")
    if not (language.folder / language.fetched).exists():
        pytest.skip(f"needs {language.fetched}: make test-clients")
    with _alone_in(language.folder):
        build(language)
    return language


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Other processes of the run wait: what is built twice at a time is read half written."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
