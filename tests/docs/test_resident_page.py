"""The page on resident tensors: its commands, run in sequence, give the answers that it shows."""

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
#: an etag, which differs in every run
ETAG = re.compile(r"\b[0-9a-f]{16}\b")
LEFT_OUT = {"request_id", "type", "title", "stats"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server("--device", "cpu") as address:
        yield address


def exchanges() -> list[tuple[str, Any]]:
    """Return each command with the answer that the page shows."""
    blocks = MARKED.findall(text_of(PAGE))
    assert [mark == "curl" for mark, _ in blocks] == [True, False] * (len(blocks) // 2)
    return [
        (command, json.loads(mask_etags(shown)))
        for (_, command), (_, shown) in zip(blocks[::2], blocks[1::2], strict=True)
    ]


def mask_etags(text: str) -> str:
    """Replace etags by zeros."""
    return ETAG.sub("0" * 16, text)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_page_commands_match_answers(url: str) -> None:
    assert len(exchanges()) > 5
    for command, shown in exchanges():
        local_command = command.replace("http://127.0.0.1:8000", url)
        done = subprocess.run(["bash", "-c", local_command], capture_output=True, text=True, check=True, timeout=60)
        answer = {key: part for key, part in json.loads(mask_etags(done.stdout)).items() if key not in LEFT_OUT}
        assert same(shown, answer), (command, done.stdout)


@pytest.mark.slow
def test_page_etags_are_consistent() -> None:
    """Check that each conditional request reports the version that the previous step stored."""
    etags = ETAG.findall(text_of(PAGE))
    assert etags[0] == etags[1] != etags[2]
    assert etags.count(etags[2]) == 3, "stored, and shown twice by the refusal"
