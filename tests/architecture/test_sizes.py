"""The size of files."""

from __future__ import annotations

from tests.architecture.source import EVERYTHING, files, name

LONGEST_FILE = 1000


def test_no_file_is_longer_than_a_thousand_lines() -> None:
    """Machine-made files may be: they stand in folders named `generated`."""
    by_hand = [path for path in files(*EVERYTHING) if "generated" not in path.parts]
    sizes = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in by_hand}
    assert {path for path, size in sizes.items() if size > LONGEST_FILE} == set()
