"""Headers of pages: each rule that Mozilla's HTTP Observatory scores and that does not need TLS.

https://developer.mozilla.org/en-US/observatory/docs/tests_and_scoring
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import httpx
import pytest

from tests.conftest import Client

WITH_INLINE = ["/docs", "/docs/errors", "/docs/errors/forbidden"]
PAGES = ["/", *WITH_INLINE]
ASSETS = [
    "/docs/assets/swagger-ui-bundle.js", "/docs/assets/swagger-ui.css", "/docs/mark.svg",
    "/docs/playground/app.js", "/docs/playground/page.css", "/docs/playground/gallery.json",
]  # fmt: skip


def policy(response: httpx.Response) -> dict[str, list[str]]:
    """The directives of the one content security policy."""
    (header,) = response.headers.get_list("content-security-policy")
    directives = [part.split() for part in header.split(";") if part.strip()]
    assert len({name for name, *_ in directives}) == len(directives), "the second of a name would be passed over"
    return {name: sources for name, *sources in directives}


class Parts(HTMLParser):
    """The URLs that a page loads, and its inline event handlers and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.handlers += [name for name in attributes if name.startswith("on") or name == "style"]
        if tag in ("script", "img", "iframe") and attributes.get("src"):
            self.loaded.append(attributes["src"] or "")
        if tag == "link":
            self.loaded.append(attributes.get("href") or "")


@pytest.mark.parametrize("path", PAGES)
def test_content_security_policy(client: Client, path: str) -> None:
    """“default-src 'none'”, and no unsafe source: the rule with the highest score."""
    response = client.get(path)
    directives = policy(response)
    assert directives["default-src"] == ["'none'"]
    for name in ("base-uri", "form-action", "frame-ancestors"):  # these do not follow default-src
        assert directives[name] == ["'none'"]
    for name, sources in directives.items():
        for source in sources:
            assert re.fullmatch(r"'none'|'self'|'sha256-[A-Za-z0-9+/]{43}='|data:", source), (name, source)
            assert source != "data:" or name == "img-src"
    parts = Parts(response.text)
    assert not parts.handlers, "they would need unsafe-inline"
    assert all(url.startswith("/docs/") for url in parts.loaded), "nothing of other hosts: subresource integrity"


@pytest.mark.parametrize("path", [*PAGES, *ASSETS])
def test_security_headers(client: Client, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "set-cookie" not in headers
    assert "access-control-allow-origin" not in headers


def test_policy_allows_inline_scripts_by_hash_only(client: Client) -> None:
    """The policy lists the hash of each inline script and style, and no other hash."""
    for path in WITH_INLINE:
        response = client.get(path)
        inline = re.findall(r"<(script|style)>", response.text)
        directives = policy(response)
        hashes = [s for name in ("script-src", "style-src") for s in directives[name] if s.startswith("'sha256-")]
        assert len(hashes) == len(inline)
        assert inline
