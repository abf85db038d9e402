"""Sources of the site: the repository's Markdown, with links rewritten for the site, and generated pages.

A link to a file that is not a page of the site, such as a source file, becomes a link to a page that shows the file.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Final

from scripts.build_docs import DOCS, ROOT
from scripts.website.errors import code_pages
from scripts.website.ops import op_pages, place_of

#: pages from outside docs/, with their paths in the site
OUTSIDE: Final = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
#: captions and patterns of pages; the first pattern that matches places a page, and pages of one pattern are sorted
NAVIGATION: Final = (
    (
        "Guide",
        (
            "guide/first-gradient",
            "guide/playground",
            "guide/ten-minutes",
            "guide/ten-minutes-curl",
            "guide/ten-minutes-python",
            "guide/ten-minutes-typescript",
            "guide/ten-minutes-go",
            "guide/ten-minutes-java",
            "guide/ten-minutes-rust",
            "guide/ten-minutes-cpp",
            "guide/recording",
            "guide/bridges",
            "guide/importing",
            "guide/porting",
            "guide/higher-order",
            "guide/loops",
            "guide/random",
            "guide/masks",
            "guide/complex",
            "guide/spectra",
            "guide/decompositions",
            "guide/memory",
            "guide/calls/*",
            "guide/errors",
            "guide/mistakes",
        ),
    ),
    ("Examples", ("gallery", "examples")),
    ("Reference", ("wire", "ops/index", "errors/index", "reference/*", "porting", "coming-from")),
    ("Operations", ("deploy", "scale", "operations", "keys", "state", "guide/limits-and-operations", "gpu", "guide/*")),
    ("Project", ("architecture", "adr/README", "contributing", "changelog", "*")),
)
_OPS: Final = PurePosixPath(
    "docs/ops.md"
)  # all ops on one page, for readers of the repository; in the site each op has its own
#: the words of a link, which may be an image, and its target
_LINK: Final = re.compile(r"(\[(?:!\[[^\]]*\]\([^)\s]+\)|[^\]])*\])\(([^)\s]+)\)")
_PICTURES: Final = {".svg", ".png"}
_FENCED: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LANGUAGES: Final = {".py": "python", ".toml": "toml", ".md": "markdown", ".json": "json"}


def assemble(target: Path) -> None:
    """Write the sources into the folder, after emptying it. Raises ValueError for a broken link."""
    shutil.rmtree(target, ignore_errors=True)
    for path, text in {**written_pages(), **op_pages(), **code_pages()}.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text, encoding="utf-8")
    for picture in (path for path in DOCS.rglob("*.*") if path.suffix in _PICTURES):
        path_in_site = target / picture.relative_to(DOCS)
        path_in_site.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, path_in_site)


def written_pages() -> dict[str, str]:
    """Return Markdown by path: the repository's pages, and pages that show the files they link to."""
    places = _places()
    shown: set[PurePosixPath] = set()
    pages = {
        place: _turned((ROOT / source).read_text(encoding="utf-8"), source, places, shown)
        for source, place in places.items()
    }
    pages["index.md"] += navigation(page.removesuffix(".md") for page in pages)
    pages["adr/README.md"] += _toctree("", sorted(p.stem for p in (DOCS / "adr").glob("0*.md")))
    return pages | {f"{_source_page(path)}": _source(path) for path in sorted(shown)}


def _places() -> dict[PurePosixPath, str]:
    """Return each page's path in the site, by its path in the repository."""
    inside = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    places = {PurePosixPath("docs") / path: path for path in inside}
    del places[_OPS]
    return places | {PurePosixPath(source): place for source, place in OUTSIDE.items()}


def navigation(pages: Iterable[str]) -> str:
    """Return the tables of contents for the start page. The decisions are listed on their own page."""
    unplaced = {page for page in pages if not fnmatch(page, "adr/0*") and page != "index"} | {
        "ops/index",
        "errors/index",
    }
    parts = []
    for caption, patterns in NAVIGATION:
        entries = list(_matched(patterns, unplaced))
        parts.append(_toctree(caption, entries))
    if unplaced:
        raise ValueError(f"no place in the navigation for {', '.join(sorted(unplaced))}")
    return "".join(parts)


def _matched(patterns: Iterable[str], unplaced: set[str]) -> Iterator[str]:
    for pattern in patterns:
        # Compare depths, because fnmatch's star matches slashes too.
        matches = sorted(page for page in unplaced if fnmatch(page, pattern) and page.count("/") == pattern.count("/"))
        unplaced.difference_update(matches)
        yield from matches


def _toctree(caption: str, entries: Iterable[str]) -> str:
    option = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + option + "\n" + "\n".join(entries) + "\n```\n"


def _turned(text: str, source: PurePosixPath, places: dict[PurePosixPath, str], shown: set[PurePosixPath]) -> str:
    """Return the page with its links rewritten. Linked files that are not pages are added to `shown`."""

    def rewritten_link(match: re.Match[str]) -> str:
        words, link = match.groups()
        words = words[0] + _LINK.sub(rewritten_link, words[1:])  # an image inside the link
        return f"{words}({link if _is_external(link) else _target(link, source, places, shown)})"

    # split() puts fenced blocks at the odd positions.
    parts = _FENCED.split(text)
    return "".join(part if i % 2 else _LINK.sub(rewritten_link, part) for i, part in enumerate(parts))


def _is_external(link: str) -> bool:
    return "://" in link or link.startswith("#")


def _target(link: str, source: PurePosixPath, places: dict[PurePosixPath, str], shown: set[PurePosixPath]) -> str:
    path, _, fragment = link.partition("#")
    target = PurePosixPath(os.path.normpath(source.parent / path))
    if target == _OPS:
        return _relative(place_of(fragment) if fragment else "ops/index.md", places[source])
    if target in places:
        return _relative(places[target], places[source]) + (f"#{fragment}" if fragment else "")
    if not (ROOT / target).exists():
        raise ValueError(f"{source} refers to {link}, which is not there")
    if target.suffix in _PICTURES:
        return _relative(f"{target.relative_to('docs')}", places[source])
    shown.add(target)
    return _relative(_source_page(target), places[source])


def _relative(page: str, source: str) -> str:
    return os.path.relpath(page, PurePosixPath(source).parent)


def _source_page(path: PurePosixPath) -> str:
    return f"source/{path}.md"


def _source(path: PurePosixPath) -> str:
    """Return a page that shows a file of the repository, or lists the files of a folder."""
    head = f"---\norphan: true\nnosearch: true\n---\n\n# {path}\n\n"
    if (ROOT / path).is_dir():
        names = sorted(
            file.relative_to(ROOT).as_posix() for file in (ROOT / path).rglob("*.*") if file.suffix != ".pyc"
        )
        return head + "\n".join(f"- `{name}`" for name in names) + "\n"
    language = _LANGUAGES.get(path.suffix, "text")
    return f"{head}``````{language}\n{(ROOT / path).read_text(encoding='utf-8').rstrip()}\n``````\n"
