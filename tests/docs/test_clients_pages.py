"""The pages about clients are true: their programs are run, and print what they show."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.server import running_server
from tests.docs.marked import ROOT, blocks

LOCAL = "http://127.0.0.1:8000"
PAGES = {"docs/guide/ten-minutes-python.md": "ten_minutes.py", "clients/README.md": "ten_lines.py"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server("--device", "cpu") as address:
        yield address


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_program_of_a_page(page: str, url: str, tmp_path: Path) -> None:
    """Its blocks are one program, by the client of this checkout, wherever the installed one is from."""
    program = "\n".join(block.replace(LOCAL, url) for block in blocks(page, "python"))
    (tmp_path / PAGES[page]).write_text(program, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, PAGES[page]],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python")},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert run.stdout == "".join(blocks(page, "output")), run.stderr
