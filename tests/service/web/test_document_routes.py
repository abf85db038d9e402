"""Routes of the OpenAPI documents: etags, gzip if the client accepts it, and no keys."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from service.api.media import takes_gzip
from service.web.pages.openapi import DOCUMENT_NAMES
from tests.conftest import Client
from tests.service.support import problem

PATHS = [f"/{name}" for name in DOCUMENT_NAMES]
PLAIN = {"Accept-Encoding": "identity"}


@pytest.mark.parametrize("path", PATHS)
def test_matching_etag_gets_304(client: Client, path: str) -> None:
    for coding in (PLAIN, {"Accept-Encoding": "gzip"}):
        first = client.get(path, headers=coding)
        etag = first.headers["etag"]
        for stated in (etag, f"W/{etag}", f'"0", {etag}', "*"):
            again = client.get(path, headers={**coding, "If-None-Match": stated})
            assert (again.status_code, again.content) == (304, b"")
            for name in ("etag", "vary", "cache-control"):
                assert again.headers[name] == first.headers[name]
            assert "content-encoding" not in again.headers
        changed = client.get(path, headers={**coding, "If-None-Match": '"0123456789abcdef"'})
        assert (changed.status_code, changed.content) == (200, first.content)


def test_each_representation_has_its_own_etag(make_client: Callable[..., Client], client: Client) -> None:
    answers = [client.get(path, headers={"Accept-Encoding": coding}) for path in PATHS for coding in ("gzip", "br")]
    etags = [answer.headers["etag"] for answer in answers]
    assert len(set(etags)) == len(etags) == 8
    assert make_client().get(PATHS[0], headers=PLAIN).headers["etag"] == etags[1], "and the same at every start"


@pytest.mark.parametrize("path", PATHS)
def test_document_is_gzipped_if_accepted(client: Client, path: str) -> None:
    plain = client.get(path, headers=PLAIN)
    zipped, raw = client.get(path, headers={"Accept-Encoding": "gzip"}), raw_bytes(client, path)
    assert zipped.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert zipped.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert len(raw) * 5 < len(plain.content)
    assert int(zipped.headers["content-length"]) == len(raw)
    assert gzip.decompress(raw) == zipped.content == plain.content


def raw_bytes(client: Client, path: str) -> bytes:
    """The bytes of the response as sent."""

    async def read() -> bytes:
        async with client._http.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as response:
            return b"".join([part async for part in response.aiter_raw()])

    return client._runner.run(read())


@pytest.mark.parametrize(
    ("stated", "taken"),
    [
        ("gzip", True), ("GZIP", True), ("x-gzip", True), ("*", True), ("br, gzip;q=0.5", True), ("deflate,gzip", True),
        ("gzip;q=0.001", True), ("", False), ("identity", False), ("br", False), ("gzip;q=0", False),
        ("*, gzip;q=0", False), ("gzip;q=0, *", False), ("*;q=0", False), ("gzip;q=x", False), ("gzipped", False),
    ],
)  # fmt: skip
def test_accept_encoding_allows_gzip(stated: str, taken: bool) -> None:
    assert takes_gzip(stated) == taken


def test_no_gzip_without_accept_encoding(client: Client) -> None:
    client._http.headers.pop("accept-encoding", None)
    assert "content-encoding" not in client.get(PATHS[0]).headers


def test_malformed_etag_is_refused(client: Client) -> None:
    problem(client.get(PATHS[0], headers={"If-None-Match": "x"}), 422, "invalid_field")


def test_allowed_origin_may_read_the_documents(make_client: Callable[..., Client]) -> None:
    app = make_client(cors_origins="https://app.example")
    answer: httpx.Response = app.get(PATHS[2], headers={"Origin": "https://app.example", "Accept-Encoding": "gzip"})
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert {name.strip() for name in answer.headers["vary"].split(",")} == {"Accept-Encoding", "Origin"}


def test_no_key_is_needed(make_client: Callable[..., Client]) -> None:
    keyed: Any = make_client(api_key="a-key-that-is-long-enough-for-a-server")
    assert [keyed.get(path).status_code for path in PATHS] == [200] * 4
    problem(keyed.get("/v1/ops"), 401, "unauthenticated")
