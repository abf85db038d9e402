"""`make docs` rebuilds only what has changed, according to a dry run of make."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.build_docs import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
PAGES, PASSES, ACCURACY, MEMORY, SITE = "build_docs", "passes_table", "accuracy_table", "memory_picture", "website"


@pytest.fixture
def scripts_after_change(tmp_path: Path) -> Callable[[str], list[str]]:
    """Return a function that lists the scripts that run after a file has changed in a complete build."""
    for name in ("pages", "passes", "accuracy", "memory", "site"):
        (tmp_path / name).touch()

    def changed(name: str) -> list[str]:
        assert not name or (ROOT / name).is_file()
        new = [f"--what-if={name}"] if name else []
        process = subprocess.run(
            ["make", "--dry-run", "docs", f"DOCS={tmp_path}", *new],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return re.findall(r"-m scripts\.(\w+)", process.stdout)

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
def test_changed_file_triggers_scripts(
    scripts_after_change: Callable[[str], list[str]], name: str, scripts: list[str]
) -> None:
    assert scripts_after_change(name) == scripts


def test_missing_output_is_rebuilt(scripts_after_change: Callable[[str], list[str]], tmp_path: Path) -> None:
    (tmp_path / "passes").unlink()
    assert scripts_after_change("") == [PASSES, SITE]
