"""The drawings of the documentation: complete, current, small and accessible."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from engine import registry
from scripts.drawings.__main__ import FOLDERS, drawings, superfluous
from scripts.drawings.definitions import definitions
from scripts.drawings.drawn import DOCS, Drawn, id_in
from scripts.drawings.examples import examples, programs
from scripts.drawings.gallery import gallery
from scripts.drawings.passes import passes
from tests.sampling import together

pytestmark = pytest.mark.slow

MAX_BYTES = 30_000
PICTURES = sorted(path for folder in FOLDERS for path in (DOCS / folder).rglob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn() -> list[Drawn]:
    return list(drawings())


def test_drawings_are_current(drawn: list[Drawn]) -> None:
    """Run `make drawings` if this fails."""
    stale = [each.place for each in drawn if not each.path.is_file() or id_in(each.path.read_text()) != each.graph_id]
    assert stale == []
    assert superfluous(drawn) == []
    assert len({each.path for each in drawn}) == len(drawn)


def test_drawing_id_depends_on_graph_and_title() -> None:
    nodes = [{"op": "input", "name": "x"}, {"op": "sin", "operands": [0]}]
    ids = {
        Drawn("a", title, {"nodes": changed}).graph_id
        for title in ("one", "other")
        for changed in (nodes, nodes[:1], [{**nodes[0], "name": "y"}, nodes[1]], [nodes[0], {**nodes[1], "op": "cos"}])
    }
    assert len(ids) == 8
    tensor = {"dtype": "float64", "shape": [1]}
    with_numbers, without = (
        Drawn("a", "t", {"nodes": [{"op": "constant", "attrs": {"value": {**tensor, **more}}}]})
        for more in ({"data": [1.0]}, {})
    )
    assert with_numbers.message == without.message, "elements are not drawn"


def test_drawing_sources_are_complete() -> None:
    composites = {"gelu", "layer_norm", "attention", "cross_entropy", "linear", "silu", "mse_loss"}
    assert set(definitions()) > composites
    assert all(registry().ops[name].is_composite for name in definitions())
    assert "relu" not in definitions()
    assert set(examples()) == {path.stem for path in programs()}
    assert len(examples()) >= 20
    assert list(passes()) == ["written", "dce", "fold", "simplify", "cse", "dce_again"]
    assert all((DOCS.parent / entry["drawing"]).is_file() for entry in gallery().values())


@together
@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_drawing_is_accessible_svg(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < MAX_BYTES
    root = ET.fromstring(text)
    assert root.get("role") == "img"
    assert root.get("aria-label") == root.findtext(f"{SVG}title")
    style = root.findtext(f"{SVG}style") or ""
    assert "prefers-color-scheme:dark" in style
    assert "@media print" in style
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert not [each for each in root.iter() if each.get("fill") or each.get("style") or each.tag == f"{SVG}script"]


def test_definition_graph_matches_builder() -> None:
    nodes = definitions()["mse_loss"].graph["nodes"]
    assert [node["op"] for node in nodes] == ["input", "input", "sub", "square", "mean"]
    assert nodes[2]["operands"] == [0, 1]


@pytest.mark.parametrize("name", ["gelu", "attention"])
def test_ops_page_shows_drawing(name: str) -> None:
    assert f"(drawings/ops/{name}.svg)" in (DOCS / "ops.md").read_text(encoding="utf-8")


def test_passes_page_shows_every_drawing() -> None:
    page = (DOCS / "passes.md").read_text(encoding="utf-8")
    assert re.findall(r"\(drawings/passes/(\w+)\.svg\)", page) == list(passes())
