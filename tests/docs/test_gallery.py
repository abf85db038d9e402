"""The gallery: each graph says what it is and what comes of it, and the server agrees."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT, Client

FOLDER = ROOT / "examples" / "gallery"
GALLERY = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
MEMBERS = {"title", "paragraph", "source", "tags", "drawing", "mode", "request", "expected"}
FIELDS = {"physics", "statistics", "machine learning", "optimisation", "finance", "graphics"}
BUNDLED = ROOT / "service" / "web" / "pages" / "generated" / "playground" / "gallery.json"


def test_how_many_there_are() -> None:
    assert len(GALLERY) >= 24
    tags = {tag for example in GALLERY.values() for tag in example["tags"]}
    assert tags >= FIELDS | {"imported", "ONNX"}
    assert all(FIELDS & set(example["tags"]) for example in GALLERY.values())


@pytest.mark.parametrize("name", GALLERY)
def test_what_an_example_says(name: str) -> None:
    example = GALLERY[name]
    assert set(example) == MEMBERS
    assert example["drawing"] == f"docs/gallery/{name}.svg"
    assert example["mode"] in ("forward", "gradients")
    assert set(example["request"]) <= {"graph", "feeds", "of", "wrt", "outputs"}, "it runs by itself: it writes nothing"
    assert example["expected"]["source"]
    assert 0 < example["expected"]["within"] <= 1e-7
    titles = [other["title"] for other in GALLERY.values()]
    assert titles.count(example["title"]) == 1


@pytest.mark.parametrize("name", GALLERY)
def test_the_server_answers_what_is_expected(client: Client, name: str) -> None:
    example = GALLERY[name]
    response = client.post(f"/v1/{example['mode']}", json=example["request"])
    assert response.status_code == 200, response.text
    answer, expected = response.json(), example["expected"]
    for kind in ("values", "gradients"):
        told = {entry["node"]: entry["tensor"] for entry in answer.get(kind, [])}
        wanted = {entry["node"]: entry["data"] for entry in expected.get(kind, [])}
        assert wanted.keys() == told.keys(), "all that the request asks for is expected"
        for node, data in wanted.items():
            close(told[node], data, expected["within"], f"{kind} of node {node}")


def close(tensor: dict[str, Any], data: list[float], within: float, where: str) -> None:
    found, wanted = np.array(tensor["data"], np.float64), np.array(data, np.float64)
    assert found.shape == wanted.shape, where
    assert np.all(np.abs(found - wanted) <= within * (1 + np.abs(wanted))), f"{where}: {found} and not {wanted}"


@pytest.mark.parametrize("name", GALLERY)
def test_every_parameter_has_its_gradient(name: str) -> None:
    request = GALLERY[name]["request"]
    parameters = {i for i, node in enumerate(request["graph"]["nodes"]) if node["op"] == "parameter"}
    assert parameters == set(request["wrt"]) == {entry["node"] for entry in GALLERY[name]["expected"]["gradients"]}


def test_the_playground_has_all_of_them() -> None:
    """`make playground` puts them beside the page."""
    bundled = json.loads(BUNDLED.read_text(encoding="utf-8"))
    wanted = [
        {"name": name, **{member: example[member] for member in ("title", "paragraph", "mode", "request")}}
        for name, example in GALLERY.items()
    ]
    assert bundled == wanted


def test_a_request_stands_on_a_line_of_its_own() -> None:
    """Whoever reads a file need not lose the digits of its numbers."""
    for path in FOLDER.glob("*.json"):
        assert sum(line.startswith(' "request": ') for line in path.read_text(encoding="utf-8").splitlines()) == 1


def test_it_is_all_there_is() -> None:
    assert {path.suffix for path in FOLDER.iterdir()} == {".json"}
