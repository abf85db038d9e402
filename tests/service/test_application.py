"""The ASGI application by itself: before its lifespan, through it, and after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest
from starlette.types import Message

from service.asgi import Application
from tests.conftest import Client
from tests.service.support import SQUARES, problem

pytestmark = pytest.mark.slow

TIMEOUT = 120.0


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure a small server that leaves this process unchanged."""
    for name, value in {
        "DEVICE": "cpu",
        "WORKERS": "1",
        "COMPILE": "off",
        "CONFINE": "off",
        "LOG_LEVEL": "error",
    }.items():
        monkeypatch.setenv(f"GRADSERVE_{name}", value)


class Server:
    """The server's side of a lifespan."""

    def __init__(self, app: Application) -> None:
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._lifespan = asyncio.ensure_future(app({"type": "lifespan"}, self._to_app.get, self._from_app.put))

    async def send(self, event: str) -> Message:
        """Send a lifespan event and return the application's reply."""
        await self._to_app.put({"type": f"lifespan.{event}"})
        return await self._from_app.get()

    async def wait_closed(self) -> None:
        """Wait until the lifespan has ended."""
        await self._lifespan


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def run_with_timeout() -> None:
        async with asyncio.timeout(TIMEOUT):
            await scenario()

    asyncio.run(run_with_timeout())


def test_requests_without_a_lifespan_are_refused() -> None:
    client = Client(Application())
    try:
        for path in ("/v1/ops", "/health/live", "/health/ready", "/nowhere"):
            assert "FastAPI(lifespan=app.lifespan)" in problem(client.get(path), 503, "not_ready")["detail"]
    finally:
        client.close()


def test_serves_during_its_lifespan_and_can_restart() -> None:
    async def scenario() -> None:
        app = Application()
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=TIMEOUT) as client:
            for _ in range(2):
                server = Server(app)
                assert await server.send("startup") == {"type": "lifespan.startup.complete"}
                answer = await client.post("/v1/gradients", json=SQUARES)
                assert answer.json()["gradients"][0]["tensor"]["data"] == [2.0, 4.0]
                assert (await client.get("/health/ready")).status_code == 200
                with pytest.raises(RuntimeError, match="already running"):
                    async with app.lifespan():
                        pass
                assert (await client.get("/health/ready")).status_code == 200, "that is none of the first one's"
                assert await server.send("shutdown") == {"type": "lifespan.shutdown.complete"}
                await server.wait_closed()
                problem(await client.get("/health/live"), 503, "not_ready")

    run(scenario)


def test_metrics_are_served_despite_metrics_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSERVE_METRICS_PORT", "8001")

    async def scenario() -> None:
        app = Application()
        server = Server(app)
        assert await server.send("startup") == {"type": "lifespan.startup.complete"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            assert (await client.get("/metrics")).status_code == 200
        await server.send("shutdown")
        await server.wait_closed()

    run(scenario)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("WORKER", "2", "the environment variable {} is not a setting; "),
        ("WORKERS", "none", "--workers ({}) must be a whole number of at least 1 and at most 256, "),
        ("KEYS_FILE", "/nowhere/keys.json", ""),
        ("STATE", "/proc/nowhere/state", ""),
    ],
)
def test_startup_failure_is_one_sentence(monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str) -> None:
    async def scenario() -> None:
        monkeypatch.setenv(f"GRADSERVE_{name}", value)
        server = Server(Application())
        reply = await server.send("startup")
        assert reply["type"] == "lifespan.startup.failed"
        assert reply["message"].startswith("gradserve: " + sentence.format(f"GRADSERVE_{name}"))
        assert "\n" not in reply["message"]
        await server.wait_closed()

    run(scenario)


def test_unexpected_startup_error_is_logged_but_not_sent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If startup raised, uvicorn would assume that lifespan is unsupported, and serve."""

    def broken(*_: object) -> None:
        raise ValueError("secret")

    async def scenario() -> None:
        monkeypatch.setattr("service.asgi.composed", broken)
        reply = await Server(Application()).send("startup")
        assert reply == {
            "type": "lifespan.startup.failed",
            "message": "gradserve could not start; the cause is in the log",
        }

    run(scenario)
    assert "secret" in caplog.text
