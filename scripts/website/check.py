"""Check that the built site works offline: its resources are its own files, and its links resolve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: tags whose address is fetched when the page is displayed, with the attribute that holds it
_FETCHED = {
    "script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src", "audio": "src",
    "object": "data", "embed": "src",
}  # fmt: skip


#: default address of the reader's own server
_OWN = ("http://127.0.0.1:8000", "http://127.0.0.1:8000/")


@dataclass
class _Page(HTMLParser):
    """Links of a page, addresses of its resources, and ids that links may name."""

    links: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record links, resources and ids. The parser calls this."""
        stated = {name: value for name, value in attrs if value is not None}
        self.ids |= {stated[name] for name in ("id", "name") if name in stated}
        if tag == "a" and "href" in stated:
            self.links.append(stated["href"])
        if tag in _FETCHED and _FETCHED[tag] in stated:
            self.parts.append(stated[_FETCHED[tag]])


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def faults(site: Path) -> list[str]:
    """Return every fault of the site in this folder, one per line."""
    return [f"{path.relative_to(site)}: {fault}" for path in sorted(site.rglob("*")) for fault in _faults(path, site)]


def _faults(path: Path, site: Path) -> Iterator[str]:
    if path.suffix == ".html":
        page = _read(path)
        yield from (f"{part} comes from another host" for part in page.parts if _elsewhere(part))
        yield from (f"{link} leads nowhere" for link in [*page.links, *page.parts] if _broken(link, path, site))
    if path.suffix == ".css":
        text = path.read_text(encoding="utf-8")
        yield from (
            f"{reference} comes from another host"
            for reference in ("url(http", "url(//", "@import")
            if reference in text
        )


def _elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc)


def _broken(link: str, page: Path, site: Path) -> bool:
    """Return whether a link leads to a missing file or section, or out of the site but not to a full https address."""
    address = urlsplit(link)
    if address.scheme in {"data", "mailto"}:
        return False
    if address.scheme or address.netloc:
        return link.partition("#")[0] not in _OWN and not (address.scheme == "https" and "." in address.netloc)
    target = _file(page.parent, address.path, site) if address.path else page
    if target is None:
        return True
    return bool(address.fragment) and target.suffix == ".html" and unquote(address.fragment) not in _read(target).ids


@cache
def _file(folder: Path, path: str, site: Path) -> Path | None:
    """Return the file of the site that a link in a page of this folder leads to, or None.

    The result is cached, since every page has the links of the navigation: a thousand times as many as there are files.
    """
    target = (folder / unquote(path)).resolve()
    return target if target.is_file() and site.resolve() in target.parents else None
