"""What was built works where there is no network: its parts are its own files, and its links lead to something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: tags whose address is fetched when the page is shown, and the attribute that holds it
_FETCHED = {
    "script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src", "audio": "src",
    "object": "data", "embed": "src",
}  # fmt: skip


#: a server of the reader's own, as it listens unless it is told otherwise
_OWN = ("http://127.0.0.1:8000", "http://127.0.0.1:8000/")


@dataclass
class _Page(HTMLParser):
    """A page's links, the addresses of its parts, and the ids that a link may name."""

    links: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called by the parser."""
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
    """Everything that is wrong with the site in this folder, a line each."""
    return [f"{path.relative_to(site)}: {fault}" for path in sorted(site.rglob("*")) for fault in _faults(path, site)]


def _faults(path: Path, site: Path) -> Iterator[str]:
    if path.suffix == ".html":
        page = _read(path)
        yield from (f"{part} comes from another host" for part in page.parts if _elsewhere(part))
        yield from (f"{link} leads nowhere" for link in [*page.links, *page.parts] if _broken(link, path, site))
    if path.suffix == ".css":
        text = path.read_text(encoding="utf-8")
        yield from (f"{found} comes from another host" for found in ("url(http", "url(//", "@import") if found in text)


def _elsewhere(address: str) -> bool:
    return bool(urlsplit(address).netloc)


def _broken(link: str, page: Path, site: Path) -> bool:
    """A link to a file or section of the site that is not there; one to elsewhere that is not a whole https address."""
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
    """What a link in a page of this folder leads to; None where it is no file of the site.

    Every page has the links of the navigation: a thousand times as many as there are files.
    """
    target = (folder / unquote(path)).resolve()
    return target if target.is_file() and site.resolve() in target.parents else None
