"""The picture of answers at equal eigenvalues: current, legible everywhere, with the verdicts of its page."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from scripts import build_docs
from scripts.equal_eigenvalues_picture import PICTURE, Answers, Array, answers, drawn, matrix, picture, weights

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def panels() -> list[Answers]:
    return answers()


def test_it_is_current() -> None:
    """Where this fails: `make docs`."""
    assert PICTURE.read_text(encoding="utf-8") == picture()


def test_it_is_made_with_the_pages() -> None:
    assert PICTURE.parent == build_docs.DOCS / "guide"
    assert f"({PICTURE.name})" in (PICTURE.parent / "decompositions.md").read_text(encoding="utf-8")


def test_it_shows_what_the_page_says(panels: list[Answers]) -> None:
    projector, root = panels
    assert np.isnan(projector.computed["nan"]).all()
    assert np.isnan(root.computed["nan"]).all()
    assert projector.miss("whole") < 1e-12
    assert root.miss("symmetric_function") < 1e-12
    page = (PICTURE.parent / "decompositions.md").read_text(encoding="utf-8")
    (off, of) = re.findall(r"of v √w vᵀ \| off by [\d.]+, of [\d.]+ \| off by ([\d.]+), of ([\d.]+) \|", page)[0]
    assert f"{root.miss('whole'):.1f}" == off
    assert f"{np.abs(root.true).max():.1f}" == of


def test_what_is_true_is_the_slope_of_the_loss(panels: list[Answers]) -> None:
    """Of the projector, which is smooth where the plane is apart from the third vector: by differences."""
    for i, j in ((0, 0), (0, 2), (1, 2)):
        moved = [_loss(matrix() + step * _both(i, j)) for step in (-1e-5, 1e-5)]
        slope = (moved[1] - moved[0]) / 2e-5
        np.testing.assert_allclose(slope, (panels[0].true * _both(i, j)).sum(), 1e-7)


def _both(i: int, j: int) -> Array:
    x = np.zeros((3, 3))
    x[i, j] = x[j, i] = 1
    return x


def _loss(x: Array) -> float:
    v = np.linalg.eigh(x)[1][:, 1:]
    return float((v @ v.T * weights()).sum())


def test_a_reader_that_does_not_see_is_told() -> None:
    root = ET.fromstring(picture())
    assert root.get("role") == "img"
    names = (root.get("aria-labelledby") or "").split()
    told = [each.text or "" for name in names for each in root if each.get("id") == name]
    assert len(told) == 2
    assert "whole is off by up to 0.3, symmetric_function is exact" in told[1]
    style = root.findtext(f"{SVG}style") or ""
    assert "prefers-color-scheme:dark" in style
    assert "@media print" in style
    assert not [each for each in root.iter() if each.get("fill") or each.get("style") or each.tag == f"{SVG}script"]
    assert len(picture().encode()) < 10_000


def test_other_answers_are_another_picture(panels: list[Answers]) -> None:
    projector, root = panels
    other = root._replace(computed=root.computed | {"whole": root.true})
    assert drawn([projector, other]) != drawn(panels)
