"""What the pages show is true: their requests are sent to a real server, and the answers compared."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from examples.server import running_server

ROOT = Path(__file__).parents[2]
# A block that a test runs has this line above it: <!-- test: kind -->
MARKED = re.compile(r"<!-- test: (\w+) -->\n```\w+\n(.*?)```", re.DOTALL)
MARKS = re.compile(r"<!-- test: ")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server("--device", "cpu") as address:
        yield address


def blocks(page: str, kind: str) -> list[str]:
    """The marked blocks of a page, of one kind."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(MARKED.findall(text)) == len(MARKS.findall(text)), "a mark without a block behind it"
    found = [code for mark, code in MARKED.findall(text) if mark == kind]
    assert found, f"{page} has no block marked {kind}"
    return found


def without_stats(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "stats"}


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


def test_the_call_in_the_readme(url: str) -> None:
    for command, expected in zip(blocks("README.md", "request"), blocks("README.md", "answer"), strict=True):
        answer = run_curl(command.replace("http://127.0.0.1:8000", url))
        assert without_stats(answer) == json.loads(expected)
        assert answer["stats"]["device"] == "cpu"


def test_the_graphs_of_the_contract(url: str) -> None:
    for block in blocks("docs/wire.md", "graph"):
        graph = json.loads(block)
        tensor = {"dtype": "float64", "shape": [3], "data": [1, 2, 3]}
        leaves = [i for i, node in enumerate(graph["nodes"]) if node["op"] in {"input", "parameter"}]
        request = {"graph": graph, "feeds": [{"node": i, "tensor": tensor} for i in leaves]}
        answer = httpx.post(url + "/v1/gradients", json=request)
        assert answer.status_code == 200, answer.text


def test_the_tensors_of_the_contract(url: str) -> None:
    for block in blocks("docs/wire.md", "tensor"):
        tensor = json.loads(block)
        request = {"graph": {"nodes": [{"op": "input"}]}, "feeds": [{"node": 0, "tensor": tensor}]}
        answer = httpx.post(url + "/v1/forward", json=request)
        assert answer.status_code == 200, answer.text
        assert answer.json()["values"] == [{"node": 0, "tensor": tensor}]


def test_every_command_that_the_readme_names_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8") + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"[`\n]make ([a-z-]+)", text))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert not [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)]
