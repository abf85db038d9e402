"""The health program of the image, run as in the Dockerfile, and the tools of `make container-check`."""

from __future__ import annotations

import re
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.deploy.images import ROOT, SKIP_REASON
from tests.service.web.test_listening import make_certificate


def run(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one of deploy's programs with only these environment variables."""
    command = [sys.executable, str(ROOT / "deploy" / program), *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@contextmanager
def server(status: int, certificate: tuple[Path, Path] | None = None) -> Iterator[int]:
    """Serve this status at /health/ready and 404 elsewhere, over TLS with a certificate; yield the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health/ready" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            listening.socket = context.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield listening.server_port
        finally:
            listening.shutdown()
            thread.join()


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_health_matches_the_server_status(status: int, code: int) -> None:
    with server(status) as port:
        assert run("health.py", GRADSERVE_PORT=str(port)).returncode == code


@pytest.mark.slow
def test_health_follows_the_flags_of_the_server(tmp_path: Path) -> None:
    """Flags come before the environment; the certificate need not be for this address."""
    certificate, command = make_certificate(tmp_path), tmp_path / "cmdline"
    with server(200) as plain, server(200, certificate) as secure:
        for flags, code in (
            (f"--port\0{plain}", 0),
            (f"--port={plain}", 0),
            (f"--port\0{secure}\0--tls-cert\0{certificate[0]}", 0),
            (f"--port\0{secure}", 1),
            (f"--port\0{plain}\0--tls-cert=none", 0),
            ("--workers\0" + "2", 1),
        ):
            command.write_text(f"/usr/bin/tini\0--\0gradserve\0serve\0--host\0{'0.0.0.0'}\0{flags}\0", "utf-8")
            assert run("health.py", str(command), GRADSERVE_PORT="1").returncode == code, flags
        command.write_text("gradserve\0serve\0", "utf-8")
        stated = {"GRADSERVE_PORT": str(secure), "GRADSERVE_TLS_CERT": str(certificate[0])}
        assert run("health.py", str(command), **stated).returncode == 0


@pytest.mark.slow
def test_absent_server_is_unhealthy() -> None:
    with server(200) as port:
        pass
    done = run("health.py", GRADSERVE_PORT=str(port))
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
def test_health_check_uses_no_proxy() -> None:
    with server(200) as port:
        assert run("health.py", GRADSERVE_PORT=str(port), http_proxy="http://127.0.0.1:1").returncode == 0


def test_missing_tools_are_reported_with_their_packages() -> None:
    image = pytest.importorskip("deploy.check.image", reason=SKIP_REASON)
    tools = {"python3": "python3", "no-such-tool": "one", "no-such-other": "two", "no-such-third": "one"}
    with pytest.raises(SystemExit, match=r"^container-check needs no-such-tool and no-such-other and no-such-third, "):
        image.require(tools)
    with pytest.raises(SystemExit, match=r"; on Debian: apt-get install one two$"):
        image.require(tools)
    image.require({"python3": "python3"})


def test_every_program_of_the_container_check_is_required() -> None:
    check = pytest.importorskip("deploy.check.__main__", reason=SKIP_REASON)
    text = (ROOT / "deploy/check/container.py").read_text(encoding="utf-8")
    called = set(re.findall(r'program\("([a-z]+)"\)', text)) | {"mount", "ip", "debootstrap"}
    assert called == set(check.PROGRAMS)
