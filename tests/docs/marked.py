"""What the tests of this folder read: marked blocks of Markdown pages; and how they compare and send them."""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
# A block that a test runs has this line above it: <!-- test: kind -->
MARKED = re.compile(r"<!-- test: (\w+) -->\n```\w+\n(.*?)```", re.DOTALL)
MARKS = re.compile(r"<!-- test: ")
CODE = re.compile(r"`([a-z_]+)`")
_ROW = re.compile(r"^\| (\d{3}(?:, \d{3})*) \| (.+) \|$", re.MULTILINE)


def text_of(page: str) -> str:
    """A page, by its path in the repository."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, kind: str) -> list[str]:
    """The marked blocks of a page, of one kind."""
    text = text_of(page)
    assert len(MARKED.findall(text)) == len(MARKS.findall(text)), "a mark without a block behind it"
    found = [code for mark, code in MARKED.findall(text) if mark == kind]
    assert found, f"{page} has no block marked {kind}"
    return found


def codes_by_status(page: str) -> dict[str, set[int]]:
    """Each code of a page's table of errors, and the statuses of its row."""
    rows = [({int(status) for status in row[0].split(", ")}, row[1]) for row in _ROW.findall(text_of(page))]
    return {code: statuses for statuses, cells in rows for code in CODE.findall(cells)}


def without_stats(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as the pages show it."""
    return {key: value for key, value in answer.items() if key != "stats"}


def same(shown: Any, got: Any) -> bool:
    """Whether two JSON values are equal, floats but for their last bits, which depend on the machine's libraries."""
    if isinstance(shown, dict) and isinstance(got, dict):
        return shown.keys() == got.keys() and all(same(shown[key], got[key]) for key in shown)
    if isinstance(shown, list) and isinstance(got, list):
        return len(shown) == len(got) and all(map(same, shown, got))
    if isinstance(shown, float) and isinstance(got, float):
        return math.isclose(shown, got, rel_tol=1e-12, abs_tol=1e-15)
    return type(shown) is type(got) and shown == got


def run_curl(command: str) -> dict[str, Any]:
    """Run the command as a reader would; where there is no curl, send what it would send."""
    if shutil.which("curl"):
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
        return json.loads(done.stdout)
    words = shlex.split(command)
    header, body = words[words.index("-H") + 1], words[words.index("-d") + 1]
    name, _, value = header.partition(": ")
    address = next(word for word in words if word.startswith("http"))
    return httpx.post(address, headers={name: value}, content=body).json()
