"""The page on models is true: its commands are run one after the other, and answered as it shows.

Its program in Python is among those of tests/clients/test_pages.py.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from examples.server import running_server
from tests.docs.marked import MARKED, same, text_of
from tests.docs.test_resident_page import plain

PAGE = "docs/guide/models.md"
COMMANDS = ("curl", "answer", "details")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server("--device", "cpu") as address:
        yield address


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_page_shows_what_is_answered(url: str) -> None:
    found = [block for block in MARKED.findall(text_of(PAGE)) if block[0] in COMMANDS]
    assert [mark for mark, _ in found] == ["curl", "answer"] * 3 + ["curl", "details"]
    for (_, command), (kind, shown) in zip(found[::2], found[1::2], strict=True):
        there = command.replace("http://127.0.0.1:8000", url)
        done = subprocess.run(["bash", "-c", there], capture_output=True, text=True, check=True, timeout=60)
        answer = json.loads(plain(done.stdout))
        if kind == "answer":
            assert same(json.loads(plain(shown)), answer), (command, done.stdout)
        else:
            assert shown.splitlines() == [error["detail"] for error in answer["errors"]]
