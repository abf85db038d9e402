"""The page on models: its commands, run in sequence, give the answers that it shows.

tests/clients/test_pages.py runs its Python program.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from examples.server import running_server
from tests.docs.marked import MARKED, same, text_of
from tests.docs.test_resident_page import mask_etags

PAGE = "docs/guide/models.md"
COMMANDS = ("curl", "answer", "details")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server("--device", "cpu") as address:
        yield address


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_page_commands_match_answers(url: str) -> None:
    blocks = [block for block in MARKED.findall(text_of(PAGE)) if block[0] in COMMANDS]
    assert [mark for mark, _ in blocks] == ["curl", "answer"] * 3 + ["curl", "details"]
    for (_, command), (kind, shown) in zip(blocks[::2], blocks[1::2], strict=True):
        local_command = command.replace("http://127.0.0.1:8000", url)
        done = subprocess.run(["bash", "-c", local_command], capture_output=True, text=True, check=True, timeout=60)
        answer = json.loads(mask_etags(done.stdout))
        if kind == "answer":
            assert same(json.loads(mask_etags(shown)), answer), (command, done.stdout)
        else:
            assert shown.splitlines() == [error["detail"] for error in answer["errors"]]
