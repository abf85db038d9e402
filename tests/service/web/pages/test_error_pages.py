"""Each error code has a page at its `type` URL, and the page shows the server's actual answer."""

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

#: codes that need a state of the server or connection, other settings than the default, or a body too large to show
WITHOUT_REQUEST = {
    "bad_request_framing", "request_timeout", "body_too_large", "too_many_nodes", "queue_full", "shutting_down",
    "worker_died", "not_ready", "unconfirmed", "deadline_exceeded", "forbidden", "internal_error", "store_full",
    "unauthenticated", "rate_limited", "conflict", "in_use",
}  # fmt: skip
RESERVED = "reserved: no call returns it yet"


@pytest.fixture(scope="module")
def pages(client: Client) -> dict[str, ErrorPage]:
    return error_pages(client.get("/openapi.json").json())


def test_explanations_cover_exactly_the_error_codes() -> None:
    assert list(EXPLANATIONS) == list(KINDS)


@pytest.mark.parametrize("code", KINDS)
def test_type_url_leads_to_the_error_page(client: Client, pages: dict[str, ErrorPage], code: str) -> None:
    refusal = Refusal(code, "")
    response = client.get(refusal.problem("")["type"])
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/html")
    assert f"<h1>{code}</h1>" in response.text
    assert f"{KINDS[code].status}: {KINDS[code].title}." in response.text
    assert all(_prose(text) in response.text for text in EXPLANATIONS[code])
    assert ("<h2>Example</h2>" in response.text) == (pages[code].example is not None)
    assert "http:" not in response.text
    assert "https:" not in response.text.replace("https://elsewhere.example", "")


def test_index_links_to_every_page(client: Client) -> None:
    page = client.get("/docs/errors").text
    assert all(f'href="/docs/errors/{code}"' in page for code in KINDS)


def test_unknown_code_is_not_found(client: Client) -> None:
    report = problem(client.get("/docs/errors/shape_mismatched"), 404, "not_found")
    assert report["detail"] == "there is no error code “shape_mismatched”; /docs/errors lists all codes"


@pytest.mark.parametrize("code", KINDS)
def test_example_request_gets_the_documented_answer(client: Client, pages: dict[str, ErrorPage], code: str) -> None:
    example = pages[code].example
    if example is None or example.request is None:
        return
    report = problem(send(client, example.request), KINDS[code].status, code)
    assert report | {"request_id": ""} == example.problem | {"request_id": ""}


def send(client: Client, example: ExampleRequest) -> Any:
    return client.request(example.method, example.path, headers=dict(example.headers), content=example.content or None)


def test_codes_without_an_example_request(pages: dict[str, ErrorPage]) -> None:
    examples = {code: page.example for code, page in pages.items()}
    assert {code for code, example in examples.items() if example and example.request is None} == WITHOUT_REQUEST
    assert all(example.problem["code"] == code for code, example in examples.items() if example)


def raised_codes() -> set[str]:
    """Find the codes that the sources use, except in tables with a row per code and in the error pages."""
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
def test_reserved_codes_have_no_example_and_are_never_raised(pages: dict[str, ErrorPage]) -> None:
    reserved = {code for code, page in pages.items() if page.reserved}
    assert reserved == {code for code, page in pages.items() if page.example is None}
    assert reserved == KINDS.keys() - raised_codes()


def test_page_states_first_that_its_code_is_reserved(client: Client, pages: dict[str, ErrorPage]) -> None:
    for code, page in pages.items():
        text = client.get(f"/docs/errors/{code}").text
        assert (RESERVED in text.lower()) == (page.example is None), code
        assert text.lower().find(RESERVED) < text.find(_prose(EXPLANATIONS[code].meaning))


def test_index_marks_reserved_codes(client: Client, pages: dict[str, ErrorPage]) -> None:
    rows = client.get("/docs/errors").text.split("<tr id=")[1:]
    assert {row.split('"')[1] for row in rows if "(reserved)" in row} == {c for c, p in pages.items() if p.reserved}


def test_report_to_a_disallowed_origin_matches_its_example(make_client: Callable[..., Client]) -> None:
    """The only stated example that a request can produce, though not with default settings."""
    (stated,) = (failure.refusal for failure in BEYOND_THE_DOCUMENT if failure.code == "forbidden")
    asking = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    response = make_client(cors_origins="https://app.example").request("OPTIONS", "/v1/gradients", headers=asking)
    assert stated is not None
    assert problem(response, 403, "forbidden") == stated.problem(response.headers["x-request-id"])


class TestPage:
    """Pages are built from the OpenAPI document."""

    def document(self, count: int) -> dict[str, Any]:
        shown = {"content": {"application/problem+json": {"examples": {"queue_full": {"value": {"status": 503}}}}}}
        return {"paths": {f"/v1/{i}": {"post": {"responses": {"503": shown}}} for i in range(count)}}

    def test_code_without_calls_is_reserved(self) -> None:
        page = error_pages({"paths": {}})["conflict"]
        assert (page.calls, page.example) == ((), None)
        assert page.reserved
        assert page.where == "Reserved: no call returns it yet."

    def test_code_of_every_path(self) -> None:
        assert error_pages({"paths": {}})["method_not_allowed"].where == "Returned by any path."

    def test_calls_are_listed(self) -> None:
        assert error_pages(self.document(2))["queue_full"].where == "Returned by `POST /v1/0`, `POST /v1/1`."
        many = error_pages(self.document(9))["queue_full"]
        assert len(many.calls) == 9
        assert many.where.endswith("`POST /v1/5` and 3 more.")

    def test_shortest_example_request_is_chosen(self) -> None:
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

    def test_long_headers_and_bodies_are_shortened(self) -> None:
        sent = ExampleRequest("POST", "/v1/forward", {"X-Filler": "x" * 500}, "[" * 300)
        lines = sent.text.splitlines()
        assert lines[0] == "POST /v1/forward"
        assert lines[1].endswith("… (500 characters)")
        assert lines[3].endswith("… (300 characters)")
        assert shorten("short") == "short"

    def test_prose_is_escaped(self) -> None:
        assert _prose("a < b, `x & y`, [here](/docs)") == ('a &lt; b, <code>x &amp; y</code>, <a href="/docs">here</a>')


class TestLayout:
    """Formatting preserves the JSON value and limits the line length."""

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
    def test_formatted_json_parses_to_the_same_value(self, value: Any) -> None:
        import json

        text = format_json(value)
        assert json.loads(text) == value
        assert max(map(len, text.splitlines())) <= WIDTH

    def test_values_that_fit_stay_on_one_line(self) -> None:
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
