"""TLS from certificate files. The openssl command creates a certificate for each run."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from service.api.media import JSON
from service.core.settings import Settings
from service.web.listening import tls_context
from service.workers.task import Reply
from tests.conftest import RunningServer
from tests.service.support import SQUARES
from tests.service.web.harness import ANSWER, FakePool, chunked, house, on_each_loop, post, run

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate")

Loop = Callable[[], asyncio.AbstractEventLoop]


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Create a certificate for localhost and its key."""
    folder.mkdir(exist_ok=True)
    files = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-out", str(files[0]), "-keyout", str(files[1])],
        check=True, capture_output=True,
    )  # fmt: skip
    return files


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.mark.slow
@on_each_loop
def test_small_and_large_requests_over_tls(loop: Loop, files: tuple[Path, Path]) -> None:
    async def scenario() -> None:
        settings = Settings(device="cpu", tls_cert=files[0], tls_key=files[1])
        trusting = ssl.create_default_context(cafile=str(files[0]))
        async with house(FakePool(lambda job: Reply(200, JSON, [job.body])), ssl=tls_context(settings)) as opened:
            client = await opened.connect(ssl=trusting, server_hostname="localhost", limit=1 << 24)
            large = bytes(range(256)) * 4096
            for sent, expected in (
                (post(ANSWER), ANSWER), (post(large), large), (chunked(large), large),
                (b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n", b'{"status":"live"}'),
            ):  # fmt: skip
                await client.send(sent)
                assert (await client.response())[1] == expected
            await client.send(post(b"", b"Content-Type: text/csv", length=1000))
            assert await client.status() == 415
            assert await client.rest() == b"", "lingering ends here too"

    run(scenario, loop)


@on_each_loop
def test_disconnect_over_tls_cancels_the_job(loop: Loop, files: tuple[Path, Path]) -> None:
    async def scenario() -> None:
        settings = Settings(device="cpu", tls_cert=files[0], tls_key=files[1])
        async with house(FakePool(None), ssl=tls_context(settings)) as opened:
            trusting = ssl.create_default_context(cafile=str(files[0]))
            client = await opened.connect(ssl=trusting, server_hostname="localhost")
            await client.send(post())
            await opened.pool.until(lambda: bool(opened.pool.jobs))
            client.leave()
            await opened.pool.until(lambda: opened.pool.cancelled == opened.pool.jobs)

    run(scenario, loop)


@pytest.mark.slow
def test_server_announces_its_https_address(
    files: tuple[Path, Path], start_server: Callable[..., RunningServer]
) -> None:
    server = start_server("--tls-cert", str(files[0]), "--tls-key", str(files[1]))
    assert server.url.startswith("https://127.0.0.1:")
    trusting = ssl.create_default_context(cafile=str(files[0]))
    assert httpx.post(server.url + "/v1/gradients", json=SQUARES, verify=trusting).status_code == 200


def test_no_tls_without_files() -> None:
    assert tls_context(Settings(device="cpu")) is None
    assert tls_context(Settings(device="cpu", tls_cert="none", tls_key="")) is None


def test_unusable_certificate_files_are_refused(files: tuple[Path, Path], tmp_path: Path) -> None:
    certificate, key = files
    _, other = make_certificate(tmp_path / "other")
    text = tmp_path / "text.pem"
    text.write_text("no certificate", encoding="utf-8")
    for stated, expected in (
        ((certificate, None), "set both --tls-cert and --tls-key"),
        ((None, key), "set both --tls-cert and --tls-key"),
        ((certificate, other), f"cannot use {certificate} with {other}: "),
        ((text, key), f"cannot use {text} with {key}: "),
        ((tmp_path / "absent", key), "No such file or directory"),
    ):
        with pytest.raises(RuntimeError, match=r".") as raised:
            tls_context(Settings(device="cpu", tls_cert=stated[0], tls_key=stated[1]))
        assert expected in str(raised.value)
