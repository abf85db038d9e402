"""The digest of the base image, from a registry on the loopback that requires a token as Docker Hub does."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from deploy.pin import USUAL, NotPinned, Reference, pin, reference
from tests.deploy.images import ROOT

pytestmark = pytest.mark.slow

MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json"}).encode()
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"
SCOPE = "repository:library/debian:pull"


class Registry(ThreadingHTTPServer):
    """Registry of one manifest, which requires the token that it issues; `asked` lists the requests so far."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.wants_token = True
        self.stated = DIGEST

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.path.startswith("/token?"):
            good = f"scope={SCOPE.replace(':', '%3A').replace('/', '%2F')}" in self.path and "service=here" in self.path
            self.answer(200 if good else 403, b'{"token": "t0k"}')
        elif self.server.wants_token and self.headers.get("Authorization") != "Bearer t0k":
            realm = f'Bearer realm="{self.server.url}/token",service="here",scope="{SCOPE}"'
            self.answer(401, b"", **{"WWW-Authenticate": realm})
        elif self.path == "/v2/library/debian/manifests/bookworm-slim" and "index.v1" in self.headers["Accept"]:
            self.answer(200, MANIFEST, **{"Docker-Content-Digest": self.server.stated})
        else:
            self.answer(404, b"{}")

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield listening
        finally:
            listening.shutdown()
            thread.join()


@pytest.fixture
def dockerfile(tmp_path: Path) -> Path:
    path = tmp_path / "Dockerfile"
    path.write_text("# text\nARG BASE=debian:bookworm-slim\n\nFROM ${BASE} AS python\nARG BASE2=x\n", encoding="utf-8")
    return path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program as `make pin` does."""
    command = [sys.executable, "-m", "deploy.pin", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def test_digest_is_written_to_the_dockerfile(registry: Registry, dockerfile: Path) -> None:
    before = dockerfile.read_text(encoding="utf-8")
    done = run("--registry", registry.url, "--dockerfile", str(dockerfile))
    assert (done.returncode, done.stdout) == (0, f"ARG BASE=debian:bookworm-slim@{DIGEST}\n"), done.stderr
    assert dockerfile.read_text(encoding="utf-8") == before.replace("slim\n", f"slim@{DIGEST}\n")
    assert [path.partition("?")[0] for path in registry.asked] == [
        "/v2/library/debian/manifests/bookworm-slim", "/token", "/v2/library/debian/manifests/bookworm-slim",
    ]  # fmt: skip


def test_digest_is_renewed_from_the_tag(registry: Registry, dockerfile: Path) -> None:
    pin(dockerfile, registry.url)
    text = dockerfile.read_text(encoding="utf-8")
    dockerfile.write_text(text.replace(DIGEST, f"sha256:{'0' * 64}"), encoding="utf-8")
    pin(dockerfile, registry.url)
    assert dockerfile.read_text(encoding="utf-8") == text


def test_registry_without_tokens(registry: Registry, dockerfile: Path) -> None:
    registry.wants_token = False
    assert pin(dockerfile, registry.url).endswith(DIGEST)
    assert len(registry.asked) == 1


def test_manifest_with_a_wrong_digest_is_refused(registry: Registry, dockerfile: Path) -> None:
    registry.stated = f"sha256:{'0' * 64}"
    with pytest.raises(NotPinned, match=f"but it is {DIGEST}"):
        pin(dockerfile, registry.url)
    assert "@" not in dockerfile.read_text(encoding="utf-8")


def test_missing_image_is_refused(registry: Registry, dockerfile: Path) -> None:
    dockerfile.write_text("ARG BASE=debian:potato\n", encoding="utf-8")
    with pytest.raises(NotPinned, match="responds with 404 for library/debian:potato"):
        pin(dockerfile, registry.url)


def test_unreachable_registry_is_reported(registry: Registry, dockerfile: Path) -> None:
    registry.server_close()
    url = registry.url
    done = run("--registry", url, "--dockerfile", str(dockerfile))
    assert done.returncode == 1
    assert done.stderr.startswith(f"nothing was pinned: cannot reach {url}: ")
    assert done.stderr.endswith("; use another one with --registry\n")
    assert done.stderr.count("\n") == 1


def test_dockerfile_without_a_base_is_refused(registry: Registry, dockerfile: Path) -> None:
    dockerfile.write_text("FROM debian\n", encoding="utf-8")
    with pytest.raises(NotPinned, match="has no line ARG BASE=image:tag"):
        pin(dockerfile, registry.url)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("debian", ("", "library/debian", "latest")),
        ("debian:bookworm-slim@sha256:00", ("", "library/debian", "bookworm-slim")),
        ("some/image:1", ("", "some/image", "1")),
        ("localhost/image", ("localhost", "image", "latest")),
        ("host.example/some/image:1", ("host.example", "some/image", "1")),
        ("host:5000/debian:1", ("host:5000", "debian", "1")),
    ],
)
def test_image_name_is_parsed(name: str, parts: tuple[str, str, str]) -> None:
    assert reference(name) == Reference(*parts)


def test_project_dockerfile_can_be_pinned(registry: Registry, tmp_path: Path) -> None:
    copy = tmp_path / "Dockerfile"
    copy.write_text((ROOT / "Dockerfile").read_text(encoding="utf-8"), encoding="utf-8")
    assert pin(copy, registry.url) == f"debian:bookworm-slim@{DIGEST}"
    assert "/" not in USUAL
