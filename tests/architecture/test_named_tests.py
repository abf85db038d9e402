"""The test of a file is found by its name: `pool/lanes.py` has `test_lanes.py` in the folder that mirrors its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.source import ROOT, files, name

ROOMS = ("engine/oplib", "service/pool", "service/transport", "service/worker")
#: files without a test of their name, and why
WITHOUT = {
    "service/pool/threads.py": "a pool for tests and for who embeds the service: theirs try it",
    "service/transport/heap_allocation.py": "memory of such a pool: tests/service/test_allocation.py has it",
}


def mirrored(path: str) -> Path:
    """Where the test of a file is."""
    folder, _, file = path.rpartition("/")
    return Path(ROOT) / "tests" / folder / f"test_{file}"


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_has_a_test_of_its_name(room: str) -> None:
    own = {name(path) for path in files(room) if path.stem != "__init__"}
    assert own
    assert sorted(path for path in own - WITHOUT.keys() if not mirrored(path).is_file()) == []


def test_no_exception_is_made_of_a_file_that_has_one() -> None:
    assert [path for path in WITHOUT if mirrored(path).is_file()] == []
