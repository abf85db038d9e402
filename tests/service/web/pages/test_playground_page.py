"""The served playground: its files, their sizes, and no references to other hosts."""

from __future__ import annotations

import gzip
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from tests.conftest import Client

FOLDER = Path(str(files("service.web.pages"))) / "generated" / "playground"
#: the files of the page, without the gallery's graphs, which the page loads itself
BUNDLE = ["app.js", "page.css", "index.html", "licences.txt"]
MAX_SIZE, MAX_ZIPPED, MAX_GALLERY = 515_000, 175_000, 150_000  # bytes
KINDS = {"app.js": "text/javascript", "page.css": "text/css", "gallery.json": "application/json"}


def loaded_urls(client: Client) -> list[str]:
    """List the URLs that the page loads."""
    return re.findall(r'<(?:script|link)[^>]* (?:src|href)="([^"]+)"', client.get("/").text)


def test_page_is_served(client: Client) -> None:
    response = client.get("/")
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<title>gradserve: playground</title>" in response.text
    assert "{" not in response.text, "a place that nothing was written into"


def test_assets_of_the_page_are_served(client: Client) -> None:
    urls = loaded_urls(client)
    assert len(urls) == 3
    assert all(url.startswith("/docs/") for url in urls)
    assert {client.get(url).status_code for url in urls} == {200}


def test_mark_is_served(client: Client) -> None:
    response = client.get("/docs/mark.svg")
    assert (response.status_code, response.headers["content-type"]) == (200, "image/svg+xml")
    assert response.text.startswith("<svg ")


@pytest.mark.parametrize("name", KINDS)
def test_files_have_type_and_etag(client: Client, name: str) -> None:
    response = client.get(f"/docs/playground/{name}")
    assert response.status_code == 200
    assert response.headers["content-type"].partition(";")[0] == KINDS[name]
    assert response.content == (FOLDER / name).read_bytes()
    again = client.get(f"/docs/playground/{name}", headers={"If-None-Match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_asset_urls_contain_a_content_hash(client: Client) -> None:
    hashes = [re.fullmatch(r"/docs/playground/(\S+)\?([0-9a-f]{12})", url) for url in loaded_urls(client)[1:]]
    assert [match and match[1] for match in hashes] == ["page.css", "app.js"]


def test_policy_allows_no_other_host(client: Client) -> None:
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert not [word for word in policy.split() if "//" in word or "unsafe" in word]


def test_other_paths_in_its_folder_are_not_found(client: Client) -> None:
    for path in ("", "/", "/../__init__.py", "/nothing"):
        assert client.get(f"/docs/playground{path}").status_code == 404


def test_bundle_size() -> None:
    contents = [(FOLDER / name).read_bytes() for name in BUNDLE]
    assert sum(map(len, contents)) <= MAX_SIZE
    assert sum(len(gzip.compress(content, mtime=0)) for content in contents) <= MAX_ZIPPED
    assert (FOLDER / "gallery.json").stat().st_size <= MAX_GALLERY
    assert {path.name for path in FOLDER.iterdir()} == {*BUNDLE, "gallery.json"}


def test_licences_cover_the_bundled_packages() -> None:
    """Each package in the script is pinned in package.json, and its licence is included."""
    stated = json.loads(Path("playground/package.json").read_text())
    text = (FOLDER / "licences.txt").read_text()
    named = set(re.findall(r"(?:^|, )((?:@[\w-]+/)?[\w.-]+ \d[\w.]*)(?=[,:])", text, re.MULTILINE))
    pinned = {f"{name} {version}" for name, version in stated["dependencies"].items()}
    assert named, "no package is named"
    assert named <= pinned, "what is in the script is pinned"
    assert {"codemirror 6.0.2", f"@dagrejs/dagre {stated['dependencies']['@dagrejs/dagre']}"} <= named
    held, _, _ = text.partition("Permission is hereby granted")
    assert len(re.findall(r"^.*: MIT\nCopyright ", held, re.MULTILINE)) == held.count(": MIT") >= 2


def test_versions_are_pinned_without_a_lock_file() -> None:
    stated = json.loads(Path("playground/package.json").read_text())
    versions = [*stated["dependencies"].values(), *stated["devDependencies"].values()]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
    assert not list(Path("playground").glob("*lock*"))
