"""Relative links: the target file and section exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.sampling import together

ROOT = Path(__file__).parents[2]
#: folders with installed and generated files
_EXCLUDED_FOLDERS = {"node_modules", "build"}
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(page for page in (ROOT / "clients").rglob("*.md") if not _EXCLUDED_FOLDERS & {*page.relative_to(ROOT).parts}),
    ]
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the fragments of a rendered page: its headings in lower case, with dashes for spaces."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Return the relative links of a page whose file or section does not exist."""
    links = []
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        path, _, fragment = link.partition("#")
        target = (page.parent / path) if path else page
        if "://" not in link and not (target.exists() and (not fragment or fragment in anchors(target))):
            links.append(link)
    return links


@together
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_resolve(page: Path) -> None:
    assert not broken_links(page)


def test_broken_link_is_detected(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = (
        "# A heading\n[1](#a-heading) [2](page.md#a-heading) [3](other.md) [4](#else)\n```go\nSlice[float64](x)\n```\n"
    )
    page.write_text(text, encoding="utf-8")
    assert broken_links(page) == ["other.md", "#else"]


def test_every_decision_is_indexed() -> None:
    listed = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    assert not [page.name for page in (ROOT / "docs" / "adr").glob("0*.md") if page.name not in listed]
