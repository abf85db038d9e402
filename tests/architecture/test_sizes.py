"""The size of files."""

from __future__ import annotations

from tests.architecture.source import EVERYTHING, files, name

LONGEST_FILE = 1000


def test_files_have_at_most_1000_lines() -> None:
    """Exempt generated files, which are in folders named `generated`."""
    handwritten = [path for path in files(*EVERYTHING) if "generated" not in path.parts]
    sizes = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in handwritten}
    assert {path for path, size in sizes.items() if size > LONGEST_FILE} == set()
