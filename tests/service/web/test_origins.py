"""Allowed hosts and origins: the same on the fast path, in the application, and under another server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any

import httpx
import pytest

from service.app import open_ring
from service.core.keys.authentication import Gate
from service.core.settings import Settings
from service.web.head import is_of_this_machine
from tests.service.application import create_routes, wrap
from tests.service.web.harness import FakePool, chunked, house, on_each_loop, post, run
from tests.service.web.test_doors import disable_fast_path, normalized

pytestmark = [on_each_loop, pytest.mark.slow]

Loop = Callable[[], asyncio.AbstractEventLoop]
KEY = "k" * 43
BEARER = b"Authorization: Bearer " + KEY.encode()
#: settings of a server by name
KINDS_OF_SERVER: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "with a name": {"allowed_hosts": "gradserve.example, [2001:db8::1]"},
    "insecure": {"insecure": "on"},
    "insecure with a name": {"insecure": "on", "allowed_hosts": "gradserve.example"},
    "with keys": {"api_key": KEY},
    "with an origin": {"cors_origins": "https://app.example"},
}


@cache
def settings_of(kind: str) -> Settings:
    """The settings of this kind of server."""
    return Settings(device="cpu", compile="off", **KINDS_OF_SERVER[kind])


@cache
def routes() -> Any:
    """The routes for all tests; cached, since they are slow to create."""
    return create_routes(Settings(device="cpu", compile="off"), FakePool())


def app_of(kind: str) -> Any:
    """The application behind its middleware."""
    settings = settings_of(kind)
    return wrap(routes(), settings, Gate(open_ring(settings)))


async def ask_connection(kind: str, sent: bytes, *, fast: bool) -> bytes:
    """Send a request over a connection and return the answer."""
    settings = settings_of(kind)
    async with house(FakePool(), app_of(kind), settings=settings, gate=Gate(open_ring(settings))) as opened:
        if not fast:
            disable_fast_path(opened.state)
        client = await opened.connect()
        await client.send(sent)
        head, body = await client.response()
        return head + body


async def ask_embedded(kind: str, sent: bytes) -> int:
    """Send a request to the application as another server does, and return the status."""
    top, *lines = sent.partition(b"\r\n\r\n")[0].split(b"\r\n")
    method, target, version = top.split(b" ")
    fields = [tuple(part.strip() for part in line.split(b":", 1)) for line in lines]
    answered: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": sent.partition(b"\r\n\r\n")[2], "more_body": False}

    async def send(message: Any) -> None:
        answered.append(message)

    path = httpx.URL("http://localhost" + target.decode()).path
    scope = {
        "type": "http", "http_version": version[5:].decode(), "method": method.decode(), "path": path,
        "raw_path": target, "query_string": b"", "root_path": "", "scheme": "http", "client": ("127.0.0.1", 1),
        "headers": [(name.lower(), value) for name, value in fields], "server": ("127.0.0.1", 80),
    }  # fmt: skip
    await app_of(kind)(scope, receive, send)
    status: int = answered[0]["status"]
    return status


def check_status(loop: Loop, kind: str, sent: bytes, status: int, code: str = "", *, elsewhere: bool = True) -> None:
    """Check that both paths give the same answer; with `elsewhere`, also the status under another server."""

    async def scenario() -> None:
        fast, slow = [await ask_connection(kind, sent, fast=fast) for fast in (True, False)]
        assert (fast[9:12], slow[9:12]) == (b"%d" % status,) * 2, (fast, slow)
        if code:
            assert normalized(fast) == normalized(slow)
            assert f'"code":"{code}"'.encode() in fast
        if elsewhere:
            assert await ask_embedded(kind, sent) == status

    run(scenario, loop)


def call(host: bytes, *lines: bytes) -> bytes:
    """A computing call to this host."""
    return post(b"{}", *lines).replace(b"Host: localhost", b"Host: " + host)


def get(path: bytes, *lines: bytes, host: bytes = b"localhost", version: bytes = b"1.1") -> bytes:
    """A GET."""
    return b"\r\n".join([b"GET %b HTTP/%b" % (path, version), b"Host: " + host, *lines, b"", b""])


LOCAL_HOSTS = (
    b"localhost", b"localhost:8000", b"LocalHost", b"localhost.", b"a.localhost", b"a.b.localhost.:1", b"127.0.0.1",
    b"127.0.0.1:65535", b"127.9.9.9", b"[::1]", b"[::1]:8000", b"[0:0:0:0:0:0:0:1]", b"[::ffff:127.0.0.1]:1",
)  # fmt: skip
FOREIGN_HOSTS = (
    b"evil.example", b"evil.example:8000", b"", b":8000", b"10.0.0.1", b"0.0.0.0", b"[::2]", b"::1", b"[::1",
    b"[localhost]", b"localhost.evil.example", b"evillocalhost", b".localhost", b"127.0.0.1.evil.example",
    b"127.0.0.1@evil.example",
    b"evil.example@127.0.0.1", b"localhost:80a", b"localhost:8000:8000", b"localhost, evil.example", b"localhost/",
    b"127.1", b"2130706433", b"localhost..", b"[::1%25lo]", b"[127.0.0.1]", b"localhost\xad",
)  # fmt: skip


class TestHosts:
    """Without keys, requests under a foreign host name are refused (DNS rebinding)."""

    @pytest.mark.parametrize("host", LOCAL_HOSTS)
    def test_local_host_is_accepted(self, loop: Loop, host: bytes) -> None:
        check_status(loop, "as it comes", call(host), 200, elsewhere=False)
        assert is_of_this_machine(host.decode("latin-1"))

    @pytest.mark.parametrize("host", FOREIGN_HOSTS)
    def test_foreign_host_is_misdirected(self, loop: Loop, host: bytes) -> None:
        check_status(loop, "as it comes", call(host), 421, "misdirected")
        assert not is_of_this_machine(host.decode("latin-1"))

    @pytest.mark.parametrize("path", [b"/", b"/docs", b"/v1/ops", b"/metrics", b"/nowhere", b"/openapi.json"])
    def test_foreign_host_is_refused_on_every_path(self, loop: Loop, path: bytes) -> None:
        check_status(loop, "as it comes", get(path, host=b"evil.example"), 421, "misdirected")

    @pytest.mark.parametrize("path", [b"/health/live", b"/health/live/"])
    def test_health_accepts_any_host(self, loop: Loop, path: bytes) -> None:
        check_status(loop, "as it comes", get(path, host=b"10.0.0.1:8000"), 200)

    @pytest.mark.parametrize(
        ("kind", "host", "status"),
        [
            ("with a name", b"gradserve.example", 200),
            ("with a name", b"GRADSERVE.example.:81", 200),
            ("with a name", b"[2001:DB8:0::1]:81", 200),
            ("with a name", b"localhost", 200),
            ("with a name", b"a.gradserve.example", 421),
            ("insecure", b"evil.example", 200),
            ("insecure with a name", b"evil.example", 421),
            ("insecure with a name", b"gradserve.example", 200),
        ],
    )
    def test_host_settings(self, loop: Loop, kind: str, host: bytes, status: int) -> None:
        check_status(loop, kind, call(host), status, elsewhere=False)

    def test_server_with_keys_accepts_any_host(self, loop: Loop) -> None:
        check_status(loop, "with keys", call(b"evil.example", BEARER), 200, elsewhere=False)
        check_status(loop, "with keys", call(b"evil.example"), 401, "unauthenticated")

    def test_absolute_target_overrides_the_host_header(self, loop: Loop) -> None:
        for target, header, status in ((b"evil.example", b"localhost", 421), (b"localhost:1", b"evil.example", 200)):
            sent = call(header).replace(b"POST /", b"POST http://%b/" % target)
            check_status(loop, "as it comes", sent, status, elsewhere=False)

    def test_only_http_10_may_omit_the_host(self, loop: Loop) -> None:
        without = post(b"{}").replace(b"Host: localhost\r\n", b"")
        check_status(loop, "as it comes", without, 400, "bad_request_framing")
        check_status(loop, "as it comes", without.replace(b"HTTP/1.1", b"HTTP/1.0"), 200, elsewhere=False)

    def test_two_host_headers_are_refused(self, loop: Loop) -> None:
        check_status(loop, "as it comes", call(b"localhost", b"Host: localhost"), 400, "bad_request_framing")

    def test_cached_head_of_a_foreign_host_is_refused_again(self, loop: Loop) -> None:
        async def scenario() -> None:
            async with house(FakePool(), app_of("as it comes"), settings=settings_of("as it comes")) as opened:
                client = await opened.connect()
                for host, status in ((b"localhost", 200), (b"evil.example", 421), (b"localhost", 200)) * 2:
                    await client.send(call(host))
                    assert await client.status() == status
                assert len(opened.pool.jobs) == 4

        run(scenario, loop)


CROSS = b"Sec-Fetch-Site: cross-site"


class TestPages:
    """A page of another origin may not call, unless the settings allow its origin."""

    @pytest.mark.parametrize("kind", ["as it comes", "with keys"])
    @pytest.mark.parametrize(
        "lines",
        [
            [b"Origin: https://evil.example"],
            [b"Origin: null"],
            [b"Origin: https://localhost"],
            [b"Origin: http://localhost:8001"],
            [b"Origin: http://127.0.0.1"],
            [b"Origin: http://localhost.evil.example"],
            [b"Origin: http://localhost/"],
            [b"Origin: "],
            [b"Origin: http://localhost", b"Origin: http://localhost"],
            [b"Origin: https://evil.example", b"Sec-Fetch-Site: same-origin"],
            [CROSS],
            [b"sec-fetch-site:Cross-Site"],
            [CROSS, b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: document"],
        ],
    )
    def test_other_origin_is_forbidden(self, loop: Loop, kind: str, lines: list[bytes]) -> None:
        lines = [BEARER, b"Content-Type: application/json", *lines]
        check_status(loop, kind, call(b"localhost", *lines), 403, "forbidden")
        check_status(loop, kind, get(b"/v1/ops/add", *lines), 403, "forbidden")

    @pytest.mark.parametrize(
        ("kind", "host", "lines"),
        [
            ("as it comes", b"localhost", [b"Origin: http://localhost"]),
            ("as it comes", b"localhost", [b"Origin: http://localhost:80"]),
            ("as it comes", b"LOCALHOST:80", [b"Origin: http://localhost"]),
            ("as it comes", b"127.0.0.1:8000", [b"Origin: http://127.0.0.1:8000"]),
            ("as it comes", b"[::1]:8000", [b"Origin: http://[::1]:8000"]),
            ("as it comes", b"localhost", [b"Origin: http://localhost", CROSS]),
            ("as it comes", b"localhost", [b"Sec-Fetch-Site: same-origin"]),
            ("as it comes", b"localhost", [b"Sec-Fetch-Site: none"]),
            ("with an origin", b"localhost", [b"Origin: https://app.example"]),
            ("with an origin", b"localhost", [b"Origin: https://app.example", CROSS]),
            ("with an origin", b"localhost", [b"Origin: http://localhost"]),
            ("with keys", b"any.example:8000", [BEARER, b"Origin: http://any.example:8000"]),
        ],
    )
    def test_own_and_configured_origins_are_allowed(
        self, loop: Loop, kind: str, host: bytes, lines: list[bytes]
    ) -> None:
        check_status(loop, kind, call(host, b"Content-Type: application/json", *lines), 200, elsewhere=False)

    def test_configured_origin_allows_no_other(self, loop: Loop) -> None:
        for line in (b"Origin: https://evil.example", CROSS):
            sent = call(b"localhost", b"Content-Type: application/json", line)
            check_status(loop, "with an origin", sent, 403, "forbidden")

    @pytest.mark.parametrize("path", [b"/", b"/docs", b"/docs/", b"/docs/errors", b"/docs/errors/forbidden"])
    def test_navigation_to_pages_is_allowed(self, loop: Loop, path: bytes) -> None:
        navigation = [CROSS, b"Sec-Fetch-Mode: navigate", b"Sec-Fetch-Dest: document"]
        check_status(loop, "with keys", get(path, *navigation), 200)
        for other in (b"Sec-Fetch-Dest: iframe", b"Sec-Fetch-Mode: no-cors", b"Origin: null"):
            name = other.partition(b":")[0]
            lines = [other, *(line for line in navigation if not line.startswith(name))]
            check_status(loop, "with keys", get(path, *lines), 403, "forbidden")

    @pytest.mark.parametrize(
        "line",
        [b"Origin: http://localhost", b"Sec-Fetch-Site: same-origin", b"Sec-Fetch-Mode: x", b"Sec-Fetch-User: ?1"],
    )
    def test_browser_must_state_the_content_type(self, loop: Loop, line: bytes) -> None:
        """Browsers send bodies without a type without asking the server first."""
        check_status(loop, "as it comes", call(b"localhost", line), 415, "unsupported_media_type")
        check_status(loop, "as it comes", call(b"localhost", line, b"Content-Type: "), 415, "unsupported_media_type")
        check_status(loop, "as it comes", call(b"localhost"), 200, elsewhere=False)

    def test_chunked_request_of_another_origin_is_forbidden(self, loop: Loop) -> None:
        sent = chunked(b"{}").replace(b"Host: localhost", b"Host: localhost\r\nOrigin: http://evil.example")
        check_status(loop, "as it comes", sent, 403, "forbidden")


class TestControlCharacters:
    """Control characters in a path have no use except to make two parsers disagree."""

    @pytest.mark.parametrize("character", [b"%0A", b"%0a", b"%0D", b"%00", b"%09", b"%1F", b"%7F", b"%C2%85"])
    @pytest.mark.parametrize("path", [b"/metrics%b", b"/v1/for%bward", b"/v1/forward%b", b"/%b", b"/v1/tensors/a%b"])
    def test_control_character_in_a_path_is_refused(self, loop: Loop, path: bytes, character: bytes) -> None:
        check_status(loop, "with keys", get(path % character, BEARER), 400, "bad_request_framing")
        check_status(loop, "with keys", post(b"{}", BEARER, path=path % character), 400, "bad_request_framing")
