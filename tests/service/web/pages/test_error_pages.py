"""Every code has its page, where `type` leads; what the page shows is what the server answers."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

from service.core.errors import KINDS, Refusal
from service.web.pages.documentation import _prose
from service.web.pages.error_pages import (
    BEYOND_THE_DOCUMENT,
    EXPLANATIONS,
    WIDTH,
    ErrorPage,
    ExampleRequest,
    error_pages,
    format_json,
    shorten,
)
from tests.architecture.source import files, parsed
from tests.conftest import ROOT, Client
from tests.service.support import problem

#: states of the server or of the connection, settings that are not the default, or a body too large to show
NO_REQUEST = {
    "bad_request_framing", "request_timeout", "body_too_large", "too_many_nodes", "queue_full", "shutting_down",
    "worker_died", "not_ready", "unconfirmed", "deadline_exceeded", "forbidden", "internal_error", "store_full",
    "unauthenticated", "rate_limited", "conflict", "in_use",
}  # fmt: skip
SAID = "reserved: no call answers it yet"


@pytest.fixture(scope="module")
def pages(client: Client) -> dict[str, ErrorPage]:
    return error_pages(client.get("/openapi.json").json())


def test_every_code_is_explained_and_nothing_else() -> None:
    assert list(EXPLANATIONS) == list(KINDS)


@pytest.mark.parametrize("code", KINDS)
def test_the_page_that_type_leads_to(client: Client, pages: dict[str, ErrorPage], code: str) -> None:
    address = Refusal(code, "")
    response = client.get(address.problem("")["type"])
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert f"<h1>{code}</h1>" in response.text
    assert f"{KINDS[code].status}: {KINDS[code].title}." in response.text
    assert all(_prose(text) in response.text for text in EXPLANATIONS[code])
    assert ("<h2>Example</h2>" in response.text) == (pages[code].example is not None)
    assert "http:" not in response.text
    assert "https:" not in response.text.replace("https://elsewhere.example", "")


def test_the_index_leads_to_every_page(client: Client) -> None:
    page = client.get("/docs/errors").text
    assert all(f'href="/docs/errors/{code}"' in page for code in KINDS)


def test_a_code_that_does_not_exist(client: Client) -> None:
    report = problem(client.get("/docs/errors/shape_mismatched"), 404, "not_found")
    assert report["detail"] == "there is no code “shape_mismatched”; /docs/errors lists them"


@pytest.mark.parametrize("code", KINDS)
def test_an_example_is_answered_with_what_the_page_shows(
    client: Client, pages: dict[str, ErrorPage], code: str
) -> None:
    example = pages[code].example
    if example is None or example.request is None:
        return
    report = problem(send(client, example.request), KINDS[code].status, code)
    assert report | {"request_id": ""} == example.problem | {"request_id": ""}


def send(client: Client, sent: ExampleRequest) -> Any:
    return client.request(sent.method, sent.path, headers=dict(sent.headers), content=sent.content or None)


def test_which_codes_have_no_request(pages: dict[str, ErrorPage]) -> None:
    examples = {code: page.example for code, page in pages.items()}
    assert {code for code, example in examples.items() if example and example.request is None} == NO_REQUEST
    assert all(example.problem["code"] == code for code, example in examples.items() if example)


def raised() -> set[str]:
    """The codes that the sources use, but for the tables with one row for each, and the pages that tell of them."""
    leaves = [
        leaf
        for path in files("service", "engine")
        if ROOT / "service/web/pages" not in path.parents
        for leaf in ast.walk(parsed(path))
    ]
    rows = {id(key) for leaf in leaves if isinstance(leaf, ast.Dict) for key in leaf.keys}
    words = (leaf.value for leaf in leaves if isinstance(leaf, ast.Constant) and id(leaf) not in rows)
    return {word for word in words if isinstance(word, str)} & KINDS.keys()


@pytest.mark.slow
def test_what_is_reserved_has_no_example_and_is_not_raised(pages: dict[str, ErrorPage]) -> None:
    reserved = {code for code, page in pages.items() if page.reserved}
    assert reserved == {code for code, page in pages.items() if page.example is None}
    assert reserved == KINDS.keys() - raised()


def test_a_page_says_first_whether_its_code_is_reserved(client: Client, pages: dict[str, ErrorPage]) -> None:
    for code, page in pages.items():
        text = client.get(f"/docs/errors/{code}").text
        assert (SAID in text.lower()) == (page.example is None), code
        assert text.lower().find(SAID) < text.find(_prose(EXPLANATIONS[code].meaning))


def test_the_index_says_what_is_reserved(client: Client, pages: dict[str, ErrorPage]) -> None:
    rows = client.get("/docs/errors").text.split("<tr id=")[1:]
    assert {row.split('"')[1] for row in rows if "(reserved)" in row} == {c for c, p in pages.items() if p.reserved}


def test_the_report_to_a_page_of_another_origin(make_client: Callable[..., Client]) -> None:
    """The one stated example that no request to a server with default settings brings about, and a request can."""
    (stated,) = (failure.refusal for failure in BEYOND_THE_DOCUMENT if failure.code == "forbidden")
    asking = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    response = make_client(cors_origins="https://app.example").request("OPTIONS", "/v1/gradients", headers=asking)
    assert stated is not None
    assert problem(response, 403, "forbidden") == stated.problem(response.headers["x-request-id"])


class TestPage:
    """What a page says is made from the document that it is given."""

    def document(self, count: int) -> dict[str, Any]:
        shown = {"content": {"application/problem+json": {"examples": {"queue_full": {"value": {"status": 503}}}}}}
        return {"paths": {f"/v1/{i}": {"post": {"responses": {"503": shown}}} for i in range(count)}}

    def test_a_code_that_no_call_has(self) -> None:
        page = error_pages({"paths": {}})["conflict"]
        assert (page.calls, page.example) == ((), None)
        assert page.reserved
        assert page.where == "Reserved: no call answers it yet."

    def test_a_code_of_every_path(self) -> None:
        assert error_pages({"paths": {}})["method_not_allowed"].where == "Answered by any path."

    def test_the_calls(self) -> None:
        assert error_pages(self.document(2))["queue_full"].where == "Answered by `POST /v1/0`, `POST /v1/1`."
        many = error_pages(self.document(9))["queue_full"]
        assert len(many.calls) == 9
        assert many.where.endswith("`POST /v1/5` and 3 more.")

    def test_a_short_request_is_preferred(self) -> None:
        def operation(stated: dict[str, Any]) -> dict[str, Any]:
            shown = {"examples": {"invalid_json": {"value": {"detail": stated.get("raw", "")}} | stated}}
            return {"responses": {"400": {"content": {"application/problem+json": shown}}}}

        none, body = operation({}), operation({"x-request": {"raw": "["}})
        head = operation({"x-request": {"headers": {"A": "b"}}})
        document = {"paths": {"/1": {"post": none}, "/2": {"post": body}, "/3": {"get": head}, "/4": {"post": head}}}
        assert self.request(document) == "GET /3\nA: b"
        del document["paths"]["/3"]
        assert self.request(document) == "POST /2\n\n["
        del document["paths"]["/2"]
        assert self.request(document) == "POST /4\nA: b\n\n{}"

    def request(self, document: dict[str, Any]) -> str:
        example = error_pages(document)["invalid_json"].example
        assert example
        assert example.request
        return example.request.text

    def test_long_parts_are_shown_short(self) -> None:
        sent = ExampleRequest("POST", "/v1/forward", {"X-Filler": "x" * 500}, "[" * 300)
        lines = sent.text.splitlines()
        assert lines[0] == "POST /v1/forward"
        assert lines[1].endswith("… (500 characters)")
        assert lines[3].endswith("… (300 characters)")
        assert shorten("short") == "short"

    def test_text_is_no_html(self) -> None:
        assert _prose("a < b, `x & y`, [here](/docs)") == ('a &lt; b, <code>x &amp; y</code>, <a href="/docs">here</a>')


class TestLayout:
    """JSON stays the same JSON, and its lines stay short."""

    @pytest.mark.parametrize(
        "value",
        [
            {},
            [],
            1.5,
            "text",
            {"a": [1, {"b": [[0.5] * 40, None]}]},
            {"data": list(range(1000))},
            {"é" * 70: [1] * 12, "k": [2] * 12},
        ],
    )
    def test_it_says_the_same(self, value: Any) -> None:
        import json

        text = format_json(value)
        assert json.loads(text) == value
        assert max(map(len, text.splitlines())) <= WIDTH

    def test_what_fits_stands_on_one_line(self) -> None:
        nodes = [{"op": "full", "attrs": {"shape": [100 + i, 100]}} for i in range(3)]
        assert format_json({"graph": {"nodes": nodes}}).splitlines() == [
            "{",
            '  "graph": {',
            '    "nodes": [',
            '      {"op": "full", "attrs": {"shape": [100, 100]}},',
            '      {"op": "full", "attrs": {"shape": [101, 100]}},',
            '      {"op": "full", "attrs": {"shape": [102, 100]}}',
            "    ]",
            "  }",
            "}",
        ]
