"""The sources of the site: the repository's Markdown with its links turned to the site's pages, and what is generated.

A link to a file that is no page of the site, such as one of the code, becomes a link to a page that shows the file.
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

#: pages from outside docs/, and where they stand in the site
OUTSIDE: Final = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
#: captions and patterns of pages; a page stands where it is first matched, and those of one pattern by name
NAVIGATION: Final = (
    (
        "Guide",
        (
            "guide/first-gradient",
            "guide/playground",
            "guide/ten-minutes-*",
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
        ),
    ),
    ("Examples", ("gallery", "examples")),
    ("Reference", ("wire", "ops/index", "errors/index", "reference/*", "porting", "coming-from")),
    ("Operation", ("deploy", "scale", "operations", "keys", "state", "guide/limits-and-operations", "gpu", "guide/*")),
    ("Inside", ("architecture", "adr/README", "contributing", "changelog", "*")),
)
_OPS: Final = PurePosixPath(
    "docs/ops.md"
)  # all ops on one page, for readers of the repository; here they have their own
_LINK: Final = re.compile(r"(\[[^\]]*\])\(([^)\s]+)\)")
_FENCED: Final = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LANGUAGES: Final = {".py": "python", ".toml": "toml", ".md": "markdown", ".json": "json"}


def assemble(target: Path) -> None:
    """Write the sources into the folder, which is emptied before. Raises ValueError for a link to nothing."""
    shutil.rmtree(target, ignore_errors=True)
    for path, text in {**written_pages(), **op_pages(), **code_pages()}.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text, encoding="utf-8")
    for picture in DOCS.rglob("*.svg"):
        place = target / picture.relative_to(DOCS)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, place)


def written_pages() -> dict[str, str]:
    """The pages that are kept as Markdown, and those of the files that they refer to: path → Markdown."""
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
    """Each page's path in the repository → its path in the site."""
    inside = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    places = {PurePosixPath("docs") / path: path for path in inside}
    del places[_OPS]
    return places | {PurePosixPath(source): place for source, place in OUTSIDE.items()}


def navigation(pages: Iterable[str]) -> str:
    """The tables of contents for the start page. The decisions are listed on their own page."""
    left = {page for page in pages if not fnmatch(page, "adr/0*") and page != "index"} | {"ops/index", "errors/index"}
    parts = []
    for caption, patterns in NAVIGATION:
        entries = list(_matched(patterns, left))
        parts.append(_toctree(caption, entries))
    if left:
        raise ValueError(f"no place in the navigation for {', '.join(sorted(left))}")
    return "".join(parts)


def _matched(patterns: Iterable[str], left: set[str]) -> Iterator[str]:
    for pattern in patterns:
        # One folder at a time: fnmatch's star takes slashes too.
        found = sorted(page for page in left if fnmatch(page, pattern) and page.count("/") == pattern.count("/"))
        left.difference_update(found)
        yield from found


def _toctree(caption: str, entries: Iterable[str]) -> str:
    option = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + option + "\n" + "\n".join(entries) + "\n```\n"


def _turned(text: str, source: PurePosixPath, places: dict[PurePosixPath, str], shown: set[PurePosixPath]) -> str:
    """The page with its links turned; the files that it refers to, and that are no pages, are added to `shown`."""

    def turned(match: re.Match[str]) -> str:
        words, link = match.groups()
        return f"{words}({link if _leads_elsewhere(link) else _target(link, source, places, shown)})"

    # Every second part is a fenced block.
    parts = _FENCED.split(text)
    return "".join(part if i % 2 else _LINK.sub(turned, part) for i, part in enumerate(parts))


def _leads_elsewhere(link: str) -> bool:
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
    if target.suffix == ".svg":
        return _relative(f"{target.relative_to('docs')}", places[source])
    shown.add(target)
    return _relative(_source_page(target), places[source])


def _relative(page: str, place: str) -> str:
    return os.path.relpath(page, PurePosixPath(place).parent)


def _source_page(path: PurePosixPath) -> str:
    return f"source/{path}.md"


def _source(path: PurePosixPath) -> str:
    """A page that shows a file of the repository, or names those of a folder."""
    head = f"---\norphan: true\nnosearch: true\n---\n\n# {path}\n\n"
    if (ROOT / path).is_dir():
        names = sorted(
            file.relative_to(ROOT).as_posix() for file in (ROOT / path).rglob("*.*") if file.suffix != ".pyc"
        )
        return head + "\n".join(f"- `{name}`" for name in names) + "\n"
    language = _LANGUAGES.get(path.suffix, "text")
    return f"{head}``````{language}\n{(ROOT / path).read_text(encoding='utf-8').rstrip()}\n``````\n"
