"""`make docs` makes what has changed, and nothing else: asked of make itself, which says what it would run."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.build_docs import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
PAGES, PASSES, ACCURACY, MEMORY, SITE = "build_docs", "passes_table", "accuracy_table", "memory_picture", "website"


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str], list[str]]:
    """The scripts that would run after a file has changed, where all had been made before."""
    for name in ("pages", "passes", "accuracy", "memory", "site"):
        (tmp_path / name).touch()

    def changed(name: str) -> list[str]:
        assert not name or (ROOT / name).is_file()
        new = [f"--what-if={name}"] if name else []
        said = subprocess.run(
            ["make", "--dry-run", "docs", f"DOCS={tmp_path}", *new],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return re.findall(r"-m scripts\.(\w+)", said.stdout)

    return changed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scripts"),
    [
        ("", []),
        ("docs/deploy.md", [SITE]),
        ("README.md", [SITE]),
        ("docs/porting_notes.toml", [PAGES, SITE]),
        ("service/web/head.py", [PAGES, SITE]),
        ("clients/python/gradserve_client/client.py", [PAGES, SITE]),
        ("engine/ir/familiar_names.toml", [PAGES, PASSES, ACCURACY, MEMORY, SITE]),
        ("engine/ops/reduce/sums.py", [PAGES, PASSES, MEMORY, SITE]),
        ("engine/codegen/functions/elementary.py", [PAGES, PASSES, ACCURACY, MEMORY, SITE]),
        ("examples/heat.py", [PAGES, SITE]),
        ("examples/gallery/bezier.json", [PAGES, SITE]),
        ("tests/passes/corpus.py", [PASSES, SITE]),
        ("tests/contract/cases.py", [PASSES, SITE]),
        ("tests/engine/codegen/kernels/accuracy.py", [ACCURACY, SITE]),
        ("scripts/memory_picture.py", [PAGES, MEMORY, SITE]),
    ],
)
def test_what_a_change_has_made(made: Callable[[str], list[str]], name: str, scripts: list[str]) -> None:
    assert made(name) == scripts


def test_what_was_never_made_is_made(made: Callable[[str], list[str]], tmp_path: Path) -> None:
    (tmp_path / "passes").unlink()
    assert made("") == [PASSES, SITE]
