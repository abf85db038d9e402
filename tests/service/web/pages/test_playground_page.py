"""The playground as it is served: its files, how long they are, and that nothing in them leads to another host."""

from __future__ import annotations

import gzip
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from tests.conftest import Client

FOLDER = Path(str(files("service.web.pages"))) / "generated" / "playground"
#: what makes the page; the graphs of the gallery lie beside it, and are loaded by it
BUNDLE = ["app.js", "page.css", "index.html", "licences.txt"]
MOST, MOST_ZIPPED, MOST_OF_GALLERY = 500_000, 170_000, 150_000  # bytes
KINDS = {"app.js": "text/javascript", "page.css": "text/css", "gallery.json": "application/json"}


def loaded(client: Client) -> list[str]:
    """The addresses of what the page loads."""
    return re.findall(r'<(?:script|link)[^>]* (?:src|href)="([^"]+)"', client.get("/").text)


def test_the_page(client: Client) -> None:
    response = client.get("/")
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<title>gradserve: playground</title>" in response.text
    assert "{" not in response.text, "a place that nothing was written into"


def test_what_it_loads_is_there(client: Client) -> None:
    addresses = loaded(client)
    assert len(addresses) == 3
    assert all(address.startswith("/docs/") for address in addresses)
    assert {client.get(address).status_code for address in addresses} == {200}


@pytest.mark.parametrize("name", KINDS)
def test_its_files(client: Client, name: str) -> None:
    response = client.get(f"/docs/playground/{name}")
    assert response.status_code == 200
    assert response.headers["content-type"].partition(";")[0] == KINDS[name]
    assert response.content == (FOLDER / name).read_bytes()
    again = client.get(f"/docs/playground/{name}", headers={"If-None-Match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_addresses_change_with_what_is_behind_them(client: Client) -> None:
    hashes = [re.fullmatch(r"/docs/playground/(\S+)\?([0-9a-f]{12})", address) for address in loaded(client)[1:]]
    assert [match and match[1] for match in hashes] == ["page.css", "app.js"]


def test_it_asks_nothing_of_another_host(client: Client) -> None:
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert not [word for word in policy.split() if "//" in word or "unsafe" in word]


def test_nothing_else_is_served_from_its_folder(client: Client) -> None:
    for path in ("", "/", "/../__init__.py", "/nothing"):
        assert client.get(f"/docs/playground{path}").status_code == 404


def test_how_long_it_is() -> None:
    contents = [(FOLDER / name).read_bytes() for name in BUNDLE]
    assert sum(map(len, contents)) <= MOST
    assert sum(len(gzip.compress(content, mtime=0)) for content in contents) <= MOST_ZIPPED
    assert (FOLDER / "gallery.json").stat().st_size <= MOST_OF_GALLERY
    assert {path.name for path in FOLDER.iterdir()} == {*BUNDLE, "gallery.json"}


def test_licences_of_all_that_is_in_it() -> None:
    """Each package that package.json pins is in the script, or is one that builds it."""
    stated = json.loads(Path("playground/package.json").read_text())
    text = (FOLDER / "licences.txt").read_text()
    named = set(re.findall(r"(?:^|, )((?:@[\w-]+/)?[\w.-]+ \d[\w.]*)(?=[,:])", text, re.MULTILINE))
    pinned = {f"{name} {version}" for name, version in stated["dependencies"].items()}
    assert named, "no package is named"
    assert named <= pinned, "what is in the script is pinned"
    assert {"codemirror 6.0.2", f"@dagrejs/dagre {stated['dependencies']['@dagrejs/dagre']}"} <= named
    held, _, _ = text.partition("Permission is hereby granted")
    assert len(re.findall(r"^.*: MIT\nCopyright ", held, re.MULTILINE)) == held.count(": MIT") >= 2


def test_versions_are_pinned_and_no_registry_is_named() -> None:
    stated = json.loads(Path("playground/package.json").read_text())
    versions = [*stated["dependencies"].values(), *stated["devDependencies"].values()]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
    assert not list(Path("playground").glob("*lock*"))
