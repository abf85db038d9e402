"""The application under a URL prefix of a host: its answers and its links."""

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
ECHO = {"graph": {"nodes": [node("input")]}}
FEEDS = {"feeds.0": np.arange(5.0)}
LINK = re.compile(r"""(?:href|src)="(/[^"]*)"|url: '(/[^']*)'""")


def application(**stated: Any) -> ASGIApp:
    """The complete API on workers of this process."""
    settings = Settings(**{"device": "cpu", "compile": "off", **stated})
    return Hosted(create_app(settings), settings)


def proxied(app: ASGIApp) -> ASGIApp:
    """Serve as behind a proxy that strips the prefix and announces it: `uvicorn --root-path /grad`."""

    async def under(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "root_path": PREFIX}, receive, send)

    return under


def mounted(app: ASGIApp) -> ASGIApp:
    """Mount in another FastAPI application."""
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
    def test_binary_call(self, under: Client) -> None:
        response = under.post(f"{PREFIX}/v1/forward", content=body(ECHO, FEEDS), headers=BINARY)
        assert np.array_equal(answered(response)[1]["values.0"], FEEDS["feeds.0"])

    def test_binary_tensor(self, under: Client) -> None:
        path, headers = f"{PREFIX}/v1/tensors/kept", {"Content-Type": KIND}
        put = under.request("PUT", path, content=body(None, {"x": np.arange(3.0)}), headers=headers)
        assert put.is_success, put.text
        assert under.get(path, headers={"Accept": KIND}).headers["content-type"] == KIND

    def test_unsupported_media_type(self, under: Client) -> None:
        headers = {"Content-Type": "text/csv"}
        problem(under.post(f"{PREFIX}/v1/forward", content=b"1,2", headers=headers), 415, "unsupported_media_type")


class TestLinks:
    def test_location_of_a_registered_graph(self, under: Client) -> None:
        created = under.post(f"{PREFIX}/v1/graphs", json={"graph": SQUARES["graph"]})
        assert created.headers["location"] == f"{PREFIX}/v1/graphs/{created.json()['graph_id']}"
        assert under.get(created.headers["location"]).status_code == 200

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
    def test_types_of_error_reports(self, under: Client, alone: Client, path: str, content: bytes) -> None:
        refused, usual = under.post(PREFIX + path, content=content), alone.post(path, content=content)
        assert int(refused.headers["content-length"]) == len(refused.content)
        report, expected = without_id(refused.json()), without_id(usual.json())
        for actual, usual_report in zip(all_reports(report), all_reports(expected), strict=True):
            assert actual["type"] == PREFIX + usual_report["type"]
            assert under.get(actual["type"]).status_code == 200
            actual["type"] = usual_report["type"]
        if path == "/v1/forward":
            assert report == expected

    @pytest.mark.parametrize("page", ["/", "/docs", "/docs/errors", "/docs/errors/bad_tensor"])
    def test_links_of_pages(self, under: Client, alone: Client, page: str) -> None:
        shown, usual = under.get(PREFIX + page), alone.get(page)
        links = [a or b for a, b in LINK.findall(shown.text)]
        assert links == [PREFIX + (a or b) for a, b in LINK.findall(usual.text)] != []
        assert {under.get(link).status_code for link in links} == {200}

    def test_redirect_of_the_root(self) -> None:
        under = Client(proxied(application(playground="off")))
        assert under.get(f"{PREFIX}/").headers["location"] == f"{PREFIX}/docs"
        under.close()

    @pytest.mark.parametrize("path", [f"/{name}" for name in DOCUMENT_NAMES])
    def test_servers_of_the_openapi_document(self, under: Client, alone: Client, path: str) -> None:
        document, usual = under.get(PREFIX + path).json(), alone.get(path).json()
        assert [server["url"] for server in document["servers"]] == [PREFIX]
        assert [server["url"] for server in usual["servers"]] == ["/"]
        assert f"]({PREFIX}/docs/errors)" in document["info"]["description"]
        assert document["paths"].keys() == usual["paths"].keys()


def without_id(report: dict[str, Any]) -> dict[str, Any]:
    """Remove the request id from a report and its nested reports."""
    rest = {name: value for name, value in report.items() if name != "request_id"}
    return rest | ({"errors": [without_id(nested) for nested in report["errors"]]} if "errors" in report else {})


def all_reports(report: dict[str, Any]) -> list[dict[str, Any]]:
    """List a report and its nested reports."""
    return [report, *report.get("errors", [])]


def test_trailing_slash_under_a_prefix(under: Client) -> None:
    assert under.get(f"{PREFIX}/v1/ops/").json() == under.get(f"{PREFIX}/v1/ops").json()


def test_replayed_answer_gets_the_current_prefix(app: ASGIApp) -> None:
    """The path within the application identifies the repeated call."""
    graph, headers = {"graph": {"nodes": [node("full", shape=[7])]}}, {"Idempotency-Key": "once"}
    first, second = Client(app), Client(mounted(app))
    try:
        created = first.post("/v1/graphs", json=graph, headers=headers)
        again = second.post(f"{PREFIX}/v1/graphs", json=graph, headers=headers)
        assert again.content == created.content
        assert again.headers["idempotency-replayed"] == "true"
        assert again.headers["location"] == PREFIX + created.headers["location"]
    finally:
        first.close()
        second.close()


@pytest.mark.parametrize("wrap", [mounted, proxied])
def test_keys_are_required_under_a_prefix(wrap: Callable[[ASGIApp], ASGIApp]) -> None:
    keyed = Client(wrap(application(api_key=KEY)))
    try:
        assert keyed.get(f"{PREFIX}/health/live").status_code == 200
        problem(keyed.post(f"{PREFIX}/v1/gradients", json=SQUARES), 401, "unauthenticated")
        headers = {"Authorization": f"Bearer {KEY}"}
        assert keyed.post(f"{PREFIX}/v1/gradients", json=SQUARES, headers=headers).status_code == 200
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
    if within and not root.endswith("/"):  # otherwise Starlette finds no route
        assert Route(within, lambda _: None).matches(scope)[0] is Match.FULL, "as Starlette sees it"
