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

PATIENCE = 120.0


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a small server, that leaves this process as it is."""
    for name, value in {
        "DEVICE": "cpu",
        "WORKERS": "1",
        "COMPILE": "off",
        "CONFINE": "off",
        "LOG_LEVEL": "error",
    }.items():
        monkeypatch.setenv(f"GRADSERVE_{name}", value)


class Server:
    """A server's side of a lifespan."""

    def __init__(self, app: Application) -> None:
        self._said: asyncio.Queue[Message] = asyncio.Queue()
        self._told: asyncio.Queue[Message] = asyncio.Queue()
        self._life = asyncio.ensure_future(app({"type": "lifespan"}, self._told.get, self._said.put))

    async def tell(self, what: str) -> Message:
        """What the application says to this."""
        await self._told.put({"type": f"lifespan.{what}"})
        return await self._said.get()

    async def over(self) -> None:
        """Return once the lifespan has."""
        await self._life


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(PATIENCE):
            await scenario()

    asyncio.run(whole())


def test_without_a_lifespan_every_request_is_told_so() -> None:
    client = Client(Application())
    try:
        for path in ("/v1/ops", "/health/live", "/health/ready", "/nowhere"):
            assert "FastAPI(lifespan=app.lifespan)" in problem(client.get(path), 503, "not_ready")["detail"]
    finally:
        client.close()


def test_it_serves_from_the_beginning_of_its_lifespan_to_the_end_and_may_live_again() -> None:
    async def scenario() -> None:
        app = Application()
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=PATIENCE) as client:
            for _ in range(2):
                server = Server(app)
                assert await server.tell("startup") == {"type": "lifespan.startup.complete"}
                answer = await client.post("/v1/gradients", json=SQUARES)
                assert answer.json()["gradients"][0]["tensor"]["data"] == [2.0, 4.0]
                assert (await client.get("/health/ready")).status_code == 200
                with pytest.raises(RuntimeError, match="started already"):
                    async with app.lifespan():
                        pass
                assert (await client.get("/health/ready")).status_code == 200, "that is none of the first one's"
                assert await server.tell("shutdown") == {"type": "lifespan.shutdown.complete"}
                await server.over()
                problem(await client.get("/health/live"), 503, "not_ready")

    run(scenario)


def test_metrics_stay_since_it_has_no_listener_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSERVE_METRICS_PORT", "8001")

    async def scenario() -> None:
        app = Application()
        server = Server(app)
        assert await server.tell("startup") == {"type": "lifespan.startup.complete"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            assert (await client.get("/metrics")).status_code == 200
        await server.tell("shutdown")
        await server.over()

    run(scenario)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("WORKER", "2", "the environment has {}, which is no setting; "),
        ("WORKERS", "none", "setting --workers ({}) is 'none': "),
        ("KEYS_FILE", "/nowhere/keys.json", ""),
        ("STATE", "/proc/nowhere/state", ""),
    ],
)
def test_why_it_cannot_start_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    async def scenario() -> None:
        monkeypatch.setenv(f"GRADSERVE_{name}", value)
        server = Server(Application())
        failed = await server.tell("startup")
        assert failed["type"] == "lifespan.startup.failed"
        assert failed["message"].startswith("gradserve: " + sentence.format(f"GRADSERVE_{name}"))
        assert "\n" not in failed["message"]
        await server.over()

    run(scenario)


def test_what_nobody_foresaw_is_logged_and_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An exception would have uvicorn think that there is no lifespan, and serve."""

    def broken(*_: object) -> None:
        raise ValueError("secret")

    async def scenario() -> None:
        monkeypatch.setattr("service.asgi.composed", broken)
        failed = await Server(Application()).tell("startup")
        assert failed == {
            "type": "lifespan.startup.failed",
            "message": "gradserve could not start; the log has the cause",
        }

    run(scenario)
    assert "secret" in caplog.text
