"""The page on resident tensors is true: its commands are run one after the other, and answered as it shows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from examples.server import running_server
from tests.docs.marked import MARKED, same, text_of

PAGE = "docs/guide/resident-tensors.md"
#: an etag is another one each time
ETAG = re.compile(r"\b[0-9a-f]{16}\b")
LEFT_OUT = {"request_id", "type", "title", "stats"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server("--device", "cpu") as address:
        yield address


def exchanges() -> list[tuple[str, Any]]:
    """Each command, and what is shown behind it."""
    found = MARKED.findall(text_of(PAGE))
    assert [mark == "curl" for mark, _ in found] == [True, False] * (len(found) // 2)
    return [
        (command, json.loads(plain(shown))) for (_, command), (_, shown) in zip(found[::2], found[1::2], strict=True)
    ]


def plain(text: str) -> str:
    """Without etags."""
    return ETAG.sub("0" * 16, text)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_page_shows_what_is_answered(url: str) -> None:
    assert len(exchanges()) > 5
    for command, shown in exchanges():
        there = command.replace("http://127.0.0.1:8000", url)
        done = subprocess.run(["bash", "-c", there], capture_output=True, text=True, check=True, timeout=60)
        answer = {key: part for key, part in json.loads(plain(done.stdout)).items() if key not in LEFT_OUT}
        assert same(shown, answer), (command, done.stdout)


@pytest.mark.slow
def test_the_etags_of_the_page_are_those_of_one_story() -> None:
    """What a condition is answered with is the version that the step before it has stored."""
    etags = ETAG.findall(text_of(PAGE))
    assert etags[0] == etags[1] != etags[2]
    assert etags.count(etags[2]) == 3, "stored, and shown twice by the refusal"
