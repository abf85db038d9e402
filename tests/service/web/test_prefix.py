"""The same application under a prefix of somebody else's: what it serves, and where its links lead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from service.core.keys.caller import new_key
from service.core.prefix import path_within, url_prefix
from service.core.settings import Settings
from service.web.hosted import Hosted
from service.web.pages.openapi import DOCUMENT_NAMES
from tests.conftest import Client
from tests.service.api.safetensors_support import BINARY, KIND, answered, body
from tests.service.application import create_app
from tests.service.support import SQUARES, node, problem, request

pytestmark = pytest.mark.slow

PREFIX = "/grad"
KEY = new_key()
BARE = {"graph": {"nodes": [node("input")]}}
UNDER = {"feeds.0": np.arange(5.0)}
LINK = re.compile(r"""(?:href|src)="(/[^"]*)"|url: '(/[^']*)'""")


def application(**stated: Any) -> ASGIApp:
    """The whole API, on workers of this process."""
    settings = Settings(**{"device": "cpu", "compile": "off", **stated})
    return Hosted(create_app(settings), settings)


def proxied(app: ASGIApp) -> ASGIApp:
    """As a server passes it on behind a proxy that takes the prefix off and says so: `uvicorn --root-path /grad`."""

    async def under(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "root_path": PREFIX}, receive, send)

    return under


def mounted(app: ASGIApp) -> ASGIApp:
    """As somebody's FastAPI application has it."""
    host = FastAPI()
    host.mount(PREFIX, app)
    return host


@pytest.fixture(scope="module")
def app() -> ASGIApp:
    return application()


@pytest.fixture(scope="module", params=[mounted, proxied])
def under(app: ASGIApp, request: pytest.FixtureRequest) -> Iterator[Client]:
    client = Client(request.param(app))
    yield client
    client.close()


@pytest.fixture(scope="module")
def alone(app: ASGIApp) -> Iterator[Client]:
    client = Client(app)
    yield client
    client.close()


class TestBodies:
    def test_of_a_call_in_binary(self, under: Client) -> None:
        response = under.post(f"{PREFIX}/v1/forward", content=body(BARE, UNDER), headers=BINARY)
        assert np.array_equal(answered(response)[1]["values.0"], UNDER["feeds.0"])

    def test_of_a_tensor_in_binary(self, under: Client) -> None:
        path, sent = f"{PREFIX}/v1/tensors/kept", {"Content-Type": KIND}
        put = under.request("PUT", path, content=body(None, {"x": np.arange(3.0)}), headers=sent)
        assert put.is_success, put.text
        assert under.get(path, headers={"Accept": KIND}).headers["content-type"] == KIND

    def test_of_a_kind_that_is_not_spoken(self, under: Client) -> None:
        sent = {"Content-Type": "text/csv"}
        problem(under.post(f"{PREFIX}/v1/forward", content=b"1,2", headers=sent), 415, "unsupported_media_type")


class TestLinks:
    def test_to_a_registered_graph(self, under: Client) -> None:
        made = under.post(f"{PREFIX}/v1/graphs", json={"graph": SQUARES["graph"]})
        assert made.headers["location"] == f"{PREFIX}/v1/graphs/{made.json()['graph_id']}"
        assert under.get(made.headers["location"]).status_code == 200

    @pytest.mark.parametrize(
        ("path", "content"),
        [
            ("/v1/forward", b"{"),
            ("/v1/forward", json.dumps({"graph": {"nodes": 1}, "of": "a"}).encode()),
            ("/v1/forward", json.dumps(request(node("parameter", name='"type":"/docs/errors/'))).encode()),
            ("/v1/nowhere", b"{}"),
        ],
        ids=["by a worker", "several", "a text that looks like a link", "by the front"],
    )
    def test_to_the_pages_of_errors(self, under: Client, alone: Client, path: str, content: bytes) -> None:
        refused, usual = under.post(PREFIX + path, content=content), alone.post(path, content=content)
        assert int(refused.headers["content-length"]) == len(refused.content)
        report, expected = without_id(refused.json()), without_id(usual.json())
        for found, said in zip(all_reports(report), all_reports(expected), strict=True):
            assert found["type"] == PREFIX + said["type"]
            assert under.get(found["type"]).status_code == 200
            found["type"] = said["type"]
        if path == "/v1/forward":
            assert report == expected

    @pytest.mark.parametrize("page", ["/", "/docs", "/docs/errors", "/docs/errors/bad_tensor"])
    def test_of_the_pages(self, under: Client, alone: Client, page: str) -> None:
        shown, usual = under.get(PREFIX + page), alone.get(page)
        links = [a or b for a, b in LINK.findall(shown.text)]
        assert links == [PREFIX + (a or b) for a, b in LINK.findall(usual.text)] != []
        assert {under.get(link).status_code for link in links} == {200}

    def test_of_the_beginning(self) -> None:
        under = Client(proxied(application(playground="off")))
        assert under.get(f"{PREFIX}/").headers["location"] == f"{PREFIX}/docs"
        under.close()

    @pytest.mark.parametrize("path", [f"/{name}" for name in DOCUMENT_NAMES])
    def test_of_the_document(self, under: Client, alone: Client, path: str) -> None:
        document, usual = under.get(PREFIX + path).json(), alone.get(path).json()
        assert [server["url"] for server in document["servers"]] == [PREFIX]
        assert [server["url"] for server in usual["servers"]] == ["/"]
        assert f"]({PREFIX}/docs/errors)" in document["info"]["description"]
        assert document["paths"].keys() == usual["paths"].keys()


def without_id(report: dict[str, Any]) -> dict[str, Any]:
    """A report and those in it, without what differs between two requests."""
    rest = {name: value for name, value in report.items() if name != "request_id"}
    return rest | ({"errors": [without_id(one) for one in report["errors"]]} if "errors" in report else {})


def all_reports(report: dict[str, Any]) -> list[dict[str, Any]]:
    """It and those in it."""
    return [report, *report.get("errors", [])]


def test_a_slash_at_the_end(under: Client) -> None:
    assert under.get(f"{PREFIX}/v1/ops/").json() == under.get(f"{PREFIX}/v1/ops").json()


def test_an_answer_that_was_given_under_another_prefix_is_given_again(app: ASGIApp) -> None:
    """What a call that may come again was, is its path within the application."""
    graph, sent = {"graph": {"nodes": [node("full", shape=[7])]}}, {"Idempotency-Key": "once"}
    first, second = Client(app), Client(mounted(app))
    try:
        made = first.post("/v1/graphs", json=graph, headers=sent)
        again = second.post(f"{PREFIX}/v1/graphs", json=graph, headers=sent)
        assert again.content == made.content
        assert again.headers["idempotency-replayed"] == "true"
        assert again.headers["location"] == PREFIX + made.headers["location"]
    finally:
        first.close()
        second.close()


@pytest.mark.parametrize("wrap", [mounted, proxied])
def test_keys_open_what_they_open_without_it(wrap: Callable[[ASGIApp], ASGIApp]) -> None:
    keyed = Client(wrap(application(api_key=KEY)))
    try:
        assert keyed.get(f"{PREFIX}/health/live").status_code == 200
        problem(keyed.post(f"{PREFIX}/v1/gradients", json=SQUARES), 401, "unauthenticated")
        sent = {"Authorization": f"Bearer {KEY}"}
        assert keyed.post(f"{PREFIX}/v1/gradients", json=SQUARES, headers=sent).status_code == 200
    finally:
        keyed.close()


@pytest.mark.parametrize(
    ("root", "path", "within", "prefix"),
    [
        ("", "/v1/ops", "/v1/ops", ""),
        ("/grad", "/grad/v1/ops", "/v1/ops", "/grad"),
        ("/grad", "/v1/ops", "/v1/ops", "/grad"),
        ("/grad", "/gradient", "/gradient", "/grad"),
        ("/grad", "/grad", "", "/grad"),
        ("/grad/", "/grad/v1/ops", "/v1/ops", "/grad"),
        ("/a b/ü", "/a b/ü/x", "/x", "/a%20b/%C3%BC"),
        ('/"><script>', '/"><script>/x', "/x", "/%22%3E%3Cscript%3E"),
        ("//evil.example", "//evil.example/x", "/x", "/evil.example"),
    ],
)
def test_path_and_prefix(root: str, path: str, within: str, prefix: str) -> None:
    scope = {"type": "http", "method": "GET", "root_path": root, "path": path}
    assert (path_within(scope), url_prefix(scope)) == (within, prefix)
    if within and not root.endswith("/"):  # where Starlette would find no route at all
        assert Route(within, lambda _: None).matches(scope)[0] is Match.FULL, "as Starlette sees it"
