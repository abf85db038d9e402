"""HTTP semantics: paths, methods, media types, sizes, request ids, pages, and calls from browsers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine import registry
from service.api.media import JSON, SAFETENSORS, SUPPORTED, negotiate
from service.web.head import timeout_of
from tests.conftest import Client
from tests.service.support import SQUARES, problem

CALLS = ["/v1/gradients", "/v1/forward"]
BOTH = "application/json or application/vnd.safetensors"


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("/v1", "/docs lists the calls"), ("/v1/", "/docs lists the calls"), ("/v1/train", "/docs lists the calls"),
        ("/v1/train/", "/docs lists the calls"), ("/v2/gradients", "did you mean /v1/gradients?"),
        ("/v1/gradients//", "did you mean /v1/gradients?"), ("/v1/ops//", "did you mean /v1/ops?"),
    ],
)  # fmt: skip
def test_unknown_path_is_not_found(client: Client, path: str, advice: str) -> None:
    """The report shows the path as sent."""
    response = client.get("http://localhost" + path)
    assert problem(response, 404, "not_found")["detail"] == f"the path {path} does not exist; {advice}"


def test_root_redirects_to_the_docs_without_the_playground(make_client: Callable[..., Client]) -> None:
    client = make_client(playground="off")
    response = client.get("/")
    assert (response.status_code, response.headers["location"]) == (307, "/docs")
    assert client.post("/").headers["allow"] == "GET, HEAD"
    problem(client.get("/docs/playground/app.js"), 404, "not_found")


def test_root_is_not_a_call(client: Client) -> None:
    assert client.post("/").headers["allow"] == "GET, HEAD"
    assert "/" not in client.get("/openapi.json").json()["paths"]


class TestSlashes:
    """A trailing slash makes no difference."""

    @pytest.mark.parametrize(
        "path",
        [
            "/v1/ops", "/v1/ops/add", "/health/live", "/health/ready", "/docs", "/docs/errors",
            "/docs/errors/not_found", "/openapi.json", "/openapi-3.0.json", "/openapi-sdk.json",
        ],
    )  # fmt: skip
    def test_page_with_a_trailing_slash(self, client: Client, path: str) -> None:
        with_slash, without = client.get(path + "/"), client.get(path)
        assert (with_slash.status_code, with_slash.content) == (200, without.content)

    @pytest.mark.parametrize("query", ["", "?timeout_ms=60000"])
    def test_call_with_a_trailing_slash(self, client: Client, query: str) -> None:
        answers = [client.post(f"/v1/gradients{slash}{query}", json=SQUARES) for slash in ("", "/")]
        first, second = (answer.json() for answer in answers)
        assert [answer.status_code for answer in answers] == [200, 200]
        assert first["gradients"] == second["gradients"]

    def test_wrong_method_is_refused(self, client: Client) -> None:
        problem(client.get("/v1/gradients/"), 405, "method_not_allowed")

    def test_unsupported_media_type_is_refused(self, client: Client) -> None:
        response = client.post("/v1/gradients/", content=b"x", headers={"Content-Type": "text/plain"})
        problem(response, 415, "unsupported_media_type")

    def test_unknown_op_gets_a_suggestion(self, client: Client) -> None:
        assert "did you mean square?" in problem(client.get("/v1/ops/squar/"), 404, "not_found")["detail"]


def test_long_path_is_shortened_in_the_report(client: Client) -> None:
    assert "p" * 64 not in problem(client.get("/" + "p" * 500), 404, "not_found")["detail"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", CALLS)
def test_calls_accept_only_post(client: Client, method: str, path: str) -> None:
    response = client.request(method, path)
    problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


def test_pages_accept_only_get(client: Client) -> None:
    assert client.post("/v1/ops", json={}).headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json; profile=x",
    ],
)
def test_spellings_of_the_json_media_type(client: Client, kind: str) -> None:
    response = client.request("POST", "/v1/gradients", json=SQUARES, headers={"Content-Type": kind})
    assert response.status_code == 200, response.text


@pytest.mark.parametrize("path", CALLS)
@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/problem+json",
        "application/json; charset=utf-16",
        "json",
        "*/*",
    ],
)
def test_unsupported_types_are_refused_with_the_supported_ones(client: Client, path: str, kind: str) -> None:
    report = problem(client.post(path, content=b"{}", headers={"Content-Type": kind}), 415, "unsupported_media_type")
    assert report["expected"] == BOTH


def test_missing_content_type_means_json(client: Client) -> None:
    assert client.post("/v1/forward", content=b"{}").status_code == 422


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "identity, gzip", "nonsense"])
def test_compressed_bodies_are_refused(client: Client, coding: str) -> None:
    headers = {"Content-Encoding": coding}
    problem(client.post("/v1/forward", content=b"{}", headers=headers), 415, "unsupported_media_type")


def test_identity_coding_is_accepted(client: Client) -> None:
    response = client.post("/v1/gradients", json=SQUARES, headers={"Content-Encoding": "identity"})
    assert response.status_code == 200


@pytest.mark.parametrize("path", [*CALLS, "/v1/ops", "/v1/ops/add"])
@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "nonsense", "application/*;q=0"])
def test_unsupported_accept_header_is_refused(client: Client, path: str, accept: str) -> None:
    method = "POST" if path in CALLS else "GET"
    report = problem(client.request(method, path, headers={"Accept": accept}), 406, "not_acceptable")
    assert report["expected"] == (BOTH if path in CALLS else JSON)


@pytest.mark.parametrize("path", ["/v1/ops", "/v1/ops/add"])
def test_pages_offer_only_json(client: Client, path: str) -> None:
    report = problem(client.get(path, headers={"Accept": SAFETENSORS}), 406, "not_acceptable")
    assert report["expected"] == JSON


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (SAFETENSORS, SAFETENSORS),
        ("Application/VND.Safetensors", SAFETENSORS),
        ("application/octet-stream", SAFETENSORS),
        (f"{SAFETENSORS}, {JSON};q=0.5", SAFETENSORS),
        (f"{SAFETENSORS};q=0.5, {JSON}", JSON),
        (f"{SAFETENSORS}, {JSON}", JSON),
        (f"{JSON};q=0, */*", SAFETENSORS),
        (f"{SAFETENSORS};q=0, application/octet-stream", None),
        (f"{SAFETENSORS};q=much", None),
        ("text/*", None),
    ],
)
def test_preferred_media_type_is_chosen(accept: str, chosen: str | None) -> None:
    assert negotiate(accept, SUPPORTED) == chosen


@pytest.mark.parametrize(
    ("accept", "fits"),
    [
        ("*/*", True),
        ("application/json", True),
        ("Application/JSON; q=0.5", True),
        ("application/*", True),
        ("text/html, */*;q=0.1", True),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("text/*", False),
        ("application/json;q=0, */*", False),
        ("application/json;q=0.000", False),
        ("*/*;q=0", False),
        ("application/problem+json", False),
    ],
)
def test_most_specific_media_range_decides(accept: str, fits: bool) -> None:
    assert (negotiate(accept, (JSON,)) is not None) is fits


@pytest.fixture(scope="module")
def small(make_client: Callable[..., Client]) -> Client:
    return make_client(max_body_bytes=1000)


def test_body_of_the_maximum_size_is_read(small: Client) -> None:
    assert small.post("/v1/forward", content=b" " * 1000).status_code == 400


def test_too_large_content_length_is_refused(small: Client) -> None:
    report = problem(small.post("/v1/forward", content=b" " * 1001), 413, "body_too_large")
    assert report["got"] == "1001 bytes"


def test_chunked_body_over_the_limit_is_refused(small: Client) -> None:
    async def pieces() -> object:
        for _ in range(11):
            yield b" " * 100

    problem(small.post("/v1/forward", content=pieces()), 413, "body_too_large")


@pytest.mark.parametrize("query", ["0", "-1", "1.5", "1e3", "ten", "", "0x10", "1_000", " 5", "9" * 30, "+5", "²"])
@pytest.mark.parametrize("path", CALLS)
def test_malformed_timeout_is_refused(client: Client, path: str, query: str) -> None:
    report = problem(client.post(path, json=SQUARES, params={"timeout_ms": query}), 422, "invalid_field")
    assert "timeout_ms" in report["detail"]


@pytest.mark.parametrize("query", ["timeout_ms=5&timeout_ms=6", "timeout=5", "x=1&timeout_ms=5"])
def test_unknown_or_repeated_query_parameter_is_refused(client: Client, query: str) -> None:
    problem(client.post(f"/v1/forward?{query}", json=SQUARES), 422, "invalid_field")


def test_timeout_is_capped_by_the_server(client: Client) -> None:
    assert [timeout_of(query, 1000) for query in (b"", b"timeout_ms=5", b"timeout_ms=5000")] == [1.0, 0.005, 1.0]
    assert client.post("/v1/gradients?timeout_ms=999999999999", json=SQUARES).status_code == 200


def test_each_request_has_its_own_id(client: Client) -> None:
    first, second = (client.get("/health/live").headers["x-request-id"] for _ in range(2))
    assert first != second


def test_request_id_of_the_client_is_returned(client: Client) -> None:
    response = client.get("/nothing", headers={"X-Request-Id": "trace-1/a:b"})
    assert problem(response, 404, "not_found")["request_id"] == "trace-1/a:b"


@pytest.mark.parametrize("stated", ["", "a b", "<script>", "x" * 129, '"'])
def test_invalid_request_id_is_replaced(client: Client, stated: str) -> None:
    assert client.get("/health/live", headers={"X-Request-Id": stated}).headers["x-request-id"] != stated


def test_health(client: Client) -> None:
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/health/ready").json() == {"status": "ready", "device": "cpu"}


def test_catalogue_lists_all_ops(client: Client) -> None:
    catalogue = client.get("/v1/ops").json()
    assert catalogue["opset"] == 2
    assert [op["name"] for op in catalogue["ops"]] == sorted(registry().ops)


@pytest.mark.parametrize("spelling", ["sum", "SUM", "SumDimOp", "sumdimop", "Summation"])
def test_op_is_found_by_any_alias(client: Client, spelling: str) -> None:
    assert client.get(f"/v1/ops/{spelling}").json()["name"] == "sum"


def test_catalogue_defaults_are_json_text(client: Client) -> None:
    attributes = {a["name"]: a for a in client.get("/v1/ops/full").json()["attributes"]}
    assert attributes["shape"]["default"] == "[]"
    assert attributes["dtype"]["default"] == '"float64"'
    assert attributes["fill"]["default"] == "0.0"


def test_unknown_op_is_not_found(client: Client) -> None:
    assert problem(client.get("/v1/ops/squar"), 404, "not_found")["detail"].endswith("did you mean square?")
    problem(client.get("/v1/ops/" + "q" * 300), 404, "not_found")


class TestPages:
    """Pages need no network: the server has all their assets."""

    def test_assets_are_served(self, client: Client) -> None:
        page = client.get("/docs").text
        loaded = [part.split('"')[0] for part in page.replace("href=", "src=").split('src="')[1:]]
        assert len(loaded) >= 3
        assert all(client.get(asset).status_code == 200 for asset in loaded)
        assert "http" not in "".join(loaded)

    def test_unknown_asset_is_not_found(self, client: Client) -> None:
        problem(client.get("/docs/assets/nothing.js"), 404, "not_found")

    def test_assets_do_not_escape_their_folder(self, client: Client) -> None:
        problem(client.get("/docs/assets/..%2f__init__.py"), 404, "not_found")


ASKING = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}


@pytest.fixture(scope="module")
def shared(make_client: Callable[..., Client]) -> Client:
    return make_client(cors_origins="https://app.example, https://other.example")


class TestBrowsers:
    """A page may call if the setting names its origin."""

    def test_pages_are_refused_by_default(self, client: Client) -> None:
        response = client.get("/health/live", headers={"Origin": "https://app.example"})
        problem(response, 403, "forbidden")
        assert "access-control-allow-origin" not in response.headers

    def test_allowed_origin_gets_a_preflight_answer(self, shared: Client) -> None:
        response = shared.request("OPTIONS", "/v1/gradients", headers=ASKING)
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == "https://app.example"

    def test_allowed_origin_can_read_refusals(self, shared: Client) -> None:
        page = {"Origin": "https://app.example", "Content-Type": JSON}
        response = shared.post("/v1/gradients", content=b"", headers=page)
        problem(response, 400, "invalid_json")
        assert response.headers["access-control-allow-origin"] == "https://app.example"

    def test_other_origin_is_refused(self, shared: Client) -> None:
        asking = ASKING | {"Origin": "https://evil.example"}
        response = shared.request("OPTIONS", "/v1/gradients", headers=asking)
        problem(response, 403, "forbidden")
        assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/v1/ops", "/health/live", "/metrics", "/nowhere"])
def test_answers_have_nosniff(client: Client, path: str) -> None:
    assert client.get(path).headers.get_list("X-Content-Type-Options") == ["nosniff"]


@pytest.mark.parametrize("body", [SQUARES, {}], ids=["answer", "report"])
def test_answers_of_calls_have_nosniff(client: Client, body: dict[str, object]) -> None:
    assert client.post("/v1/gradients", json=body).headers.get_list("X-Content-Type-Options") == ["nosniff"]
