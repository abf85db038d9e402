"""tests/README.md says of every room where its tests are, and of every folder of tests what it is for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.docs.marked import ROOT, text_of


def _words(text: str) -> list[str]:
    return re.findall(r"[\w/]+", text)


PAGE: Final = text_of("tests/README.md")
#: the first column of the table of rooms
SOURCES: Final = {name for row in PAGE.splitlines() if row.startswith("|") for name in _words(row.split("|")[1])}
ROOMS: Final = [
    path.parent for package in ("engine", "service") for path in sorted((ROOT / package).glob("*/__init__.py"))
]
FOLDERS: Final = [path for path in sorted((ROOT / "tests").iterdir()) if path.is_dir() and any(path.glob("**/*.py"))]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: f"{room.parent.name}/{room.name}")
def test_every_room_is_there(room: Path) -> None:
    parts = room.relative_to(ROOT).parts
    assert {"/".join(parts), parts[-1]} & SOURCES


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_folder_of_tests_is_there(folder: Path) -> None:
    assert f"]({folder.name}/" in PAGE


def test_the_targets_are_there() -> None:
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE))
    assert set(re.findall(r"`make ([\w-]+)`", PAGE)) <= targets
