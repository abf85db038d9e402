"""The gallery: each example has a description and an expected answer, which the server returns."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT, Client

FOLDER = ROOT / "examples" / "gallery"
GALLERY = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}
MEMBERS = {"title", "paragraph", "source", "tags", "drawing", "mode", "request", "expected"}
FIELDS = {"physics", "statistics", "machine learning", "optimisation", "finance", "graphics"}
BUNDLED = ROOT / "service" / "web" / "pages" / "generated" / "playground" / "gallery.json"


def test_gallery_covers_all_fields() -> None:
    assert len(GALLERY) >= 24
    tags = {tag for example in GALLERY.values() for tag in example["tags"]}
    assert tags >= FIELDS | {"imported", "ONNX"}
    assert all(FIELDS & set(example["tags"]) for example in GALLERY.values())


@pytest.mark.parametrize("name", GALLERY)
def test_example_has_required_members(name: str) -> None:
    example = GALLERY[name]
    assert set(example) == MEMBERS
    assert example["drawing"] == f"docs/gallery/{name}.svg"
    assert example["mode"] in ("forward", "gradients")
    assert set(example["request"]) <= {"graph", "feeds", "of", "wrt", "outputs"}, "it must run alone and store nothing"
    assert example["expected"]["source"]
    assert 0 < example["expected"]["within"] <= 1e-7
    titles = [other["title"] for other in GALLERY.values()]
    assert titles.count(example["title"]) == 1


@pytest.mark.parametrize("name", GALLERY)
def test_example_matches_expected_answer(client: Client, name: str) -> None:
    example = GALLERY[name]
    response = client.post(f"/v1/{example['mode']}", json=example["request"])
    assert response.status_code == 200, response.text
    answer, expected = response.json(), example["expected"]
    for kind in ("values", "gradients"):
        tensors = {entry["node"]: entry["tensor"] for entry in answer.get(kind, [])}
        expected_data = {entry["node"]: entry["data"] for entry in expected.get(kind, [])}
        assert expected_data.keys() == tensors.keys(), "the example must expect everything that the request asks for"
        for node, data in expected_data.items():
            assert_close(tensors[node], data, expected["within"], f"{kind} of node {node}")


def assert_close(tensor: dict[str, Any], data: list[float], tolerance: float, label: str) -> None:
    actual, expected = np.array(tensor["data"], np.float64), np.array(data, np.float64)
    assert actual.shape == expected.shape, label
    assert np.all(np.abs(actual - expected) <= tolerance * (1 + np.abs(expected))), (
        f"{label}: {actual} instead of {expected}"
    )


@pytest.mark.parametrize("name", GALLERY)
def test_every_parameter_has_gradient(name: str) -> None:
    request = GALLERY[name]["request"]
    parameters = {i for i, node in enumerate(request["graph"]["nodes"]) if node["op"] == "parameter"}
    assert parameters == set(request["wrt"]) == {entry["node"] for entry in GALLERY[name]["expected"]["gradients"]}


def test_playground_bundles_gallery() -> None:
    """Check the copy that `make playground` writes."""
    bundled = json.loads(BUNDLED.read_text(encoding="utf-8"))
    groups = [example.pop("group") for example in bundled]
    assert all(groups)
    assert len(set(groups)) == 1 + sum(left != right for left, right in pairwise(groups)), "each group is in one piece"
    expected = [
        {"name": name, **{member: example[member] for member in ("title", "paragraph", "mode", "request")}}
        for name, example in GALLERY.items()
    ]
    assert sorted(bundled, key=lambda example: example["name"]) == expected


def test_request_is_on_one_line() -> None:
    """Keep the request on one line, so that readers can copy it without losing digits."""
    for path in FOLDER.glob("*.json"):
        assert sum(line.startswith(' "request": ') for line in path.read_text(encoding="utf-8").splitlines()) == 1


def test_gallery_folder_contains_only_json() -> None:
    assert {path.suffix for path in FOLDER.iterdir()} == {".json"}
