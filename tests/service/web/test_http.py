"""HTTP itself: paths, methods, media types, sizes, ids, pages, and who may call from a browser."""

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
    "path", ["/v1", "/v1/", "/v2/gradients", "/v1/gradients//", "/v1/ops//", "/v1/train", "/v1/train/"]
)
def test_nothing_there(client: Client, path: str) -> None:
    """The report has the path as it was sent."""
    sent = client.get("http://localhost" + path)
    assert problem(sent, 404, "not_found")["detail"] == f"there is nothing at {path}; /docs lists the calls"


def test_without_the_playground_the_start_leads_to_the_calls(make_client: Callable[..., Client]) -> None:
    client = make_client(playground="off")
    response = client.get("/")
    assert (response.status_code, response.headers["location"]) == (307, "/docs")
    assert client.post("/").headers["allow"] == "GET"
    problem(client.get("/docs/playground/app.js"), 404, "not_found")


def test_the_start_is_no_call(client: Client) -> None:
    assert client.post("/").headers["allow"] == "GET"
    assert "/" not in client.get("/openapi.json").json()["paths"]


class TestSlashes:
    """A slash at the end changes nothing."""

    @pytest.mark.parametrize(
        "path",
        [
            "/v1/ops", "/v1/ops/add", "/health/live", "/health/ready", "/docs", "/docs/errors",
            "/docs/errors/not_found", "/openapi.json", "/openapi-3.0.json", "/openapi-sdk.json",
        ],
    )  # fmt: skip
    def test_a_page(self, client: Client, path: str) -> None:
        with_slash, without = client.get(path + "/"), client.get(path)
        assert (with_slash.status_code, with_slash.content) == (200, without.content)

    @pytest.mark.parametrize("query", ["", "?timeout_ms=60000"])
    def test_a_call_keeps_its_body_and_query(self, client: Client, query: str) -> None:
        answers = [client.post(f"/v1/gradients{slash}{query}", json=SQUARES) for slash in ("", "/")]
        first, second = (answer.json() for answer in answers)
        assert [answer.status_code for answer in answers] == [200, 200]
        assert first["gradients"] == second["gradients"]

    def test_a_method_that_a_call_does_not_take(self, client: Client) -> None:
        problem(client.get("/v1/gradients/"), 405, "method_not_allowed")

    def test_a_type_that_is_not_spoken(self, client: Client) -> None:
        response = client.post("/v1/gradients/", content=b"x", headers={"Content-Type": "text/plain"})
        problem(response, 415, "unsupported_media_type")

    def test_an_op_that_does_not_exist(self, client: Client) -> None:
        assert "did you mean square?" in problem(client.get("/v1/ops/squar/"), 404, "not_found")["detail"]


def test_a_path_is_shown_short(client: Client) -> None:
    assert "p" * 64 not in problem(client.get("/" + "p" * 500), 404, "not_found")["detail"]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", CALLS)
def test_calls_take_post(client: Client, method: str, path: str) -> None:
    response = client.request(method, path)
    problem(response, 405, "method_not_allowed")
    assert response.headers["allow"] == "POST"


def test_pages_take_get(client: Client) -> None:
    assert client.post("/v1/ops", json={}).headers["allow"] == "GET"


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
def test_json_in_its_spellings(client: Client, kind: str) -> None:
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
def test_other_types_are_refused_with_what_is_spoken(client: Client, path: str, kind: str) -> None:
    report = problem(client.post(path, content=b"{}", headers={"Content-Type": kind}), 415, "unsupported_media_type")
    assert report["expected"] == BOTH


def test_no_type_is_json(client: Client) -> None:
    assert client.post("/v1/forward", content=b"{}").status_code == 422


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "identity, gzip", "nonsense"])
def test_compressed_bodies_are_refused(client: Client, coding: str) -> None:
    headers = {"Content-Encoding": coding}
    problem(client.post("/v1/forward", content=b"{}", headers=headers), 415, "unsupported_media_type")


def test_identity_is_no_coding(client: Client) -> None:
    response = client.post("/v1/gradients", json=SQUARES, headers={"Content-Encoding": "identity"})
    assert response.status_code == 200


@pytest.mark.parametrize("path", [*CALLS, "/v1/ops", "/v1/ops/add"])
@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "nonsense", "application/*;q=0"])
def test_answers_that_nobody_accepts(client: Client, path: str, accept: str) -> None:
    method = "POST" if path in CALLS else "GET"
    report = problem(client.request(method, path, headers={"Accept": accept}), 406, "not_acceptable")
    assert report["expected"] == (BOTH if path in CALLS else JSON)


@pytest.mark.parametrize("path", ["/v1/ops", "/v1/ops/add"])
def test_pages_speak_json_only(client: Client, path: str) -> None:
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
def test_the_answer_is_what_is_liked_best(accept: str, chosen: str | None) -> None:
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
def test_the_most_specific_range_decides(accept: str, fits: bool) -> None:
    assert (negotiate(accept, (JSON,)) is not None) is fits


@pytest.fixture(scope="module")
def small(make_client: Callable[..., Client]) -> Client:
    return make_client(max_body_bytes=1000)


def test_a_body_of_the_limit_is_read(small: Client) -> None:
    assert small.post("/v1/forward", content=b" " * 1000).status_code == 400


def test_a_body_that_announces_too_much(small: Client) -> None:
    report = problem(small.post("/v1/forward", content=b" " * 1001), 413, "body_too_large")
    assert report["got"] == "1001 bytes"


def test_a_body_that_turns_out_too_large(small: Client) -> None:
    async def pieces() -> object:
        for _ in range(11):
            yield b" " * 100

    problem(small.post("/v1/forward", content=pieces()), 413, "body_too_large")


@pytest.mark.parametrize("query", ["0", "-1", "1.5", "1e3", "ten", "", "0x10", "1_000", " 5", "9" * 30, "+5", "²"])
@pytest.mark.parametrize("path", CALLS)
def test_a_timeout_that_is_no_number(client: Client, path: str, query: str) -> None:
    report = problem(client.post(path, json=SQUARES, params={"timeout_ms": query}), 422, "invalid_field")
    assert "timeout_ms" in report["detail"]


@pytest.mark.parametrize("query", ["timeout_ms=5&timeout_ms=6", "timeout=5", "x=1&timeout_ms=5"])
def test_a_query_that_would_be_ignored_is_refused(client: Client, query: str) -> None:
    problem(client.post(f"/v1/forward?{query}", json=SQUARES), 422, "invalid_field")


def test_a_timeout_is_lowered_to_the_servers(client: Client) -> None:
    assert [timeout_of(query, 1000) for query in (b"", b"timeout_ms=5", b"timeout_ms=5000")] == [1.0, 0.005, 1.0]
    assert client.post("/v1/gradients?timeout_ms=999999999999", json=SQUARES).status_code == 200


def test_a_request_has_an_id_of_its_own(client: Client) -> None:
    first, second = (client.get("/health/live").headers["x-request-id"] for _ in range(2))
    assert first != second


def test_the_clients_id_is_kept(client: Client) -> None:
    response = client.get("/nothing", headers={"X-Request-Id": "trace-1/a:b"})
    assert problem(response, 404, "not_found")["request_id"] == "trace-1/a:b"


@pytest.mark.parametrize("stated", ["", "a b", "<script>", "x" * 129, '"'])
def test_an_id_that_is_not_sane_is_replaced(client: Client, stated: str) -> None:
    assert client.get("/health/live", headers={"X-Request-Id": stated}).headers["x-request-id"] != stated


def test_health(client: Client) -> None:
    assert client.get("/health/live").json() == {"status": "live"}
    assert client.get("/health/ready").json() == {"status": "ready", "device": "cpu"}


def test_the_catalogue(client: Client) -> None:
    catalogue = client.get("/v1/ops").json()
    assert catalogue["opset"] == 2
    assert [op["name"] for op in catalogue["ops"]] == sorted(registry().ops)


@pytest.mark.parametrize("spelling", ["sum", "SUM", "SumDimOp", "sumdimop", "Summation"])
def test_one_op_by_any_name(client: Client, spelling: str) -> None:
    assert client.get(f"/v1/ops/{spelling}").json()["name"] == "sum"


def test_defaults_in_the_catalogue_are_json_text(client: Client) -> None:
    attributes = {a["name"]: a for a in client.get("/v1/ops/full").json()["attributes"]}
    assert attributes["shape"]["default"] == "[]"
    assert attributes["dtype"]["default"] == '"float64"'
    assert attributes["fill"]["default"] == "0.0"


def test_an_op_that_does_not_exist(client: Client) -> None:
    assert problem(client.get("/v1/ops/squar"), 404, "not_found")["detail"].endswith("did you mean square?")
    problem(client.get("/v1/ops/" + "q" * 300), 404, "not_found")


class TestPages:
    """They work without a network: whatever they load is served here."""

    def test_the_assets_are_served(self, client: Client) -> None:
        page = client.get("/docs").text
        loaded = [part.split('"')[0] for part in page.replace("href=", "src=").split('src="')[1:]]
        assert len(loaded) >= 3
        assert all(client.get(asset).status_code == 200 for asset in loaded)
        assert "http" not in "".join(loaded)

    def test_an_asset_that_does_not_exist(self, client: Client) -> None:
        problem(client.get("/docs/assets/nothing.js"), 404, "not_found")

    def test_assets_stay_in_their_folder(self, client: Client) -> None:
        problem(client.get("/docs/assets/..%2f__init__.py"), 404, "not_found")


ASKING = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}


@pytest.fixture(scope="module")
def shared(make_client: Callable[..., Client]) -> Client:
    return make_client(cors_origins="https://app.example, https://other.example")


class TestBrowsers:
    """A page may call where the setting names its origin."""

    def test_without_the_setting_no_page_may(self, client: Client) -> None:
        response = client.get("/health/live", headers={"Origin": "https://app.example"})
        problem(response, 403, "forbidden")
        assert "access-control-allow-origin" not in response.headers

    def test_a_named_page_may(self, shared: Client) -> None:
        response = shared.request("OPTIONS", "/v1/gradients", headers=ASKING)
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == "https://app.example"

    def test_refusals_can_be_read_by_a_named_page(self, shared: Client) -> None:
        page = {"Origin": "https://app.example", "Content-Type": JSON}
        response = shared.post("/v1/gradients", content=b"", headers=page)
        problem(response, 400, "invalid_json")
        assert response.headers["access-control-allow-origin"] == "https://app.example"

    def test_another_page_may_not(self, shared: Client) -> None:
        asking = ASKING | {"Origin": "https://evil.example"}
        response = shared.request("OPTIONS", "/v1/gradients", headers=asking)
        problem(response, 403, "forbidden")
        assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/v1/ops", "/health/live", "/metrics", "/nowhere"])
def test_browsers_do_not_guess_the_type_of_an_answer(client: Client, path: str) -> None:
    assert client.get(path).headers.get_list("X-Content-Type-Options") == ["nosniff"]


@pytest.mark.parametrize("body", [SQUARES, {}], ids=["answer", "report"])
def test_browsers_do_not_guess_the_type_of_a_calls_answer(client: Client, body: dict[str, object]) -> None:
    assert client.post("/v1/gradients", json=body).headers.get_list("X-Content-Type-Options") == ["nosniff"]
