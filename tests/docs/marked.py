"""Marked code blocks of Markdown pages, with functions to send and compare them."""

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
    """Return the text of a page, given its path in the repository."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, kind: str) -> list[str]:
    """Return the marked blocks of one kind on a page."""
    text = text_of(page)
    assert len(MARKED.findall(text)) == len(MARKS.findall(text)), "a mark has no code block after it"
    codes = [code for mark, code in MARKED.findall(text) if mark == kind]
    assert codes, f"{page} has no block marked {kind}"
    return codes


def codes_by_status(page: str) -> dict[str, set[int]]:
    """Map each code in the error table of a page to the statuses of its row."""
    rows = [({int(status) for status in row[0].split(", ")}, row[1]) for row in _ROW.findall(text_of(page))]
    return {code: statuses for statuses, cells in rows for code in CODE.findall(cells)}


def without_stats(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without `stats`, as the pages show it."""
    return {key: value for key, value in answer.items() if key != "stats"}


def same(shown: Any, actual: Any) -> bool:
    """Return whether two JSON values are equal, ignoring the last bits of floats, which depend on the machine."""
    if isinstance(shown, dict) and isinstance(actual, dict):
        return shown.keys() == actual.keys() and all(same(shown[key], actual[key]) for key in shown)
    if isinstance(shown, list) and isinstance(actual, list):
        return len(shown) == len(actual) and all(map(same, shown, actual))
    if isinstance(shown, float) and isinstance(actual, float):
        return math.isclose(shown, actual, rel_tol=1e-12, abs_tol=1e-15)
    return type(shown) is type(actual) and shown == actual


def run_curl(command: str) -> dict[str, Any]:
    """Run a curl command, or send the same request if curl is not installed."""
    if shutil.which("curl"):
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
        return json.loads(done.stdout)
    words = shlex.split(command)
    header, body = words[words.index("-H") + 1], words[words.index("-d") + 1]
    name, _, value = header.partition(": ")
    address = next(word for word in words if word.startswith("http"))
    return httpx.post(address, headers={name: value}, content=body).json()
