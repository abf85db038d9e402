"""The size of files."""

from __future__ import annotations

from tests.architecture.source import EVERYTHING, files, name

LONGEST_FILE = 1000
#: made by a program
GENERATED = "clients/python/gradserve_client/ops.py"


def test_no_file_is_longer_than_a_thousand_lines() -> None:
    sizes = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files(*EVERYTHING)}
    assert {path for path, size in sizes.items() if size > LONGEST_FILE} == {GENERATED}
