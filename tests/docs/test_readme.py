"""What the pages show is true: their requests are sent to a real server, and the answers compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx
import pytest

from examples.server import running_server
from tests.docs.marked import blocks, run_curl, text_of, without_stats


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running_server("--device", "cpu") as address:
        yield address


@pytest.mark.smoke
@pytest.mark.slow
def test_the_call_in_the_readme(url: str) -> None:
    for command, expected in zip(blocks("README.md", "request"), blocks("README.md", "answer"), strict=True):
        answer = run_curl(command.replace("http://127.0.0.1:8000", url))
        assert without_stats(answer) == json.loads(expected)
        assert answer["stats"]["device"] == "cpu"


@pytest.mark.slow
def test_the_graphs_of_the_contract(url: str) -> None:
    for block in blocks("docs/wire.md", "graph"):
        graph = json.loads(block)
        tensor = {"dtype": "float64", "shape": [3], "data": [1, 2, 3]}
        leaves = [i for i, node in enumerate(graph["nodes"]) if node["op"] in {"input", "parameter"}]
        request = {"graph": graph, "feeds": [{"node": i, "tensor": tensor} for i in leaves]}
        answer = httpx.post(url + "/v1/gradients", json=request)
        assert answer.status_code == 200, answer.text


@pytest.mark.slow
def test_the_tensors_of_the_contract(url: str) -> None:
    for block in blocks("docs/wire.md", "tensor"):
        tensor = json.loads(block)
        request = {"graph": {"nodes": [{"op": "input"}]}, "feeds": [{"node": 0, "tensor": tensor}]}
        answer = httpx.post(url + "/v1/forward", json=request)
        assert answer.status_code == 200, answer.text
        assert answer.json()["values"] == [{"node": 0, "tensor": tensor}]


@pytest.mark.slow
def test_every_command_that_the_readme_names_exists() -> None:
    text = text_of("README.md") + text_of("CONTRIBUTING.md")
    targets = set(re.findall(r"[`\n]make ([a-z-]+)", text))
    makefile = text_of("Makefile")
    assert targets
    assert not [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)]
