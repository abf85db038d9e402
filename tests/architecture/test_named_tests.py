"""The test of a file is found by its name: `pool/lanes.py` has `test_lanes.py` in the folder that mirrors its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.source import ROOT, files, name

ROOMS = ("engine/oplib", "service/pool", "service/transport", "service/worker")


def mirrored(path: str) -> Path:
    """Where the test of a file is."""
    folder, _, file = path.rpartition("/")
    return Path(ROOT) / "tests" / folder / f"test_{file}"


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_has_a_test_of_its_name(room: str) -> None:
    own = {name(path) for path in files(room) if path.stem != "__init__"}
    assert own
    assert sorted(path for path in own if not mirrored(path).is_file()) == []
