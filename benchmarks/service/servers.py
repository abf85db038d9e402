"""The servers that are compared, each in processes of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Final
from urllib.error import URLError

from benchmarks.record import ROOT

PEERS: Final = ROOT / "build" / "service-peers" / "bin"
PEER_FILES: Final = Path(__file__).parent / "peers"
PATIENCE: Final = 60.0


class Running:
    """A server that was started, and its URL. To be closed."""

    def __init__(self, command: list[str], url: str | None = None, **environment: str) -> None:
        """Wait until it says where it listens, or answers at `url`. Raises RuntimeError where it does neither."""
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE if url is None else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL if url else None,
            text=True,
            cwd=self._folder.name if url else ROOT,
            env={**os.environ, **environment},
        )
        self.url = url or self._announced()
        if url:
            self._wait()

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        return self._process.pid

    def kill(self) -> None:
        """End it at once, as a machine ends that is lost."""
        self._process.kill()
        self._process.wait()

    def _announced(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if "http://" not in line:
            raise RuntimeError(f"{self._process.args!r} says {line!r}")
        return line.rsplit(" ", 1)[-1].strip()

    def _wait(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._process.poll() is None:
            try:
                urllib.request.urlopen(f"{self.url}/openapi.json", timeout=5).close()
            except (URLError, OSError):
                time.sleep(0.1)
            else:
                return
        raise RuntimeError(f"{self._process.args!r} does not answer")

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._folder.cleanup()

    def __enter__(self) -> Running:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def gradserve(*options: str, device: str = "cpu", **environment: str) -> Running:
    """Ours, as it starts by itself; what it keeps ends with it, unless the options say where that is."""
    command = [sys.executable, "-m", "service", "serve", "--port", "0", "--device", device, "--log-level", "error"]
    return Running([*command, "--state", "memory", *options], None, **environment)


def with_key(key: str) -> Running:
    """Ours, where this key is asked for."""
    return gradserve(GRADSERVE_API_KEY=key)


def bare(*mode: str) -> Running:
    """One of the modes of bare.py."""
    return Running([sys.executable, "-m", "benchmarks.service.bare", *mode])


def fastapi_torch(**environment: str) -> Running:
    """FastAPI and PyTorch, by uvicorn with what it recommends."""
    port = free()
    command = [str(PEERS / "uvicorn"), "fastapi_torch:app", "--app-dir", str(PEER_FILES), "--port", str(port)]
    return Running([*command, "--no-access-log"], f"http://127.0.0.1:{port}", **environment)


def tesseract(api: str) -> Running:
    """tesseract-core's runtime on one of its files."""
    port = free()
    command = [str(PEERS / "tesseract-runtime"), "serve", "--host", "127.0.0.1", "--port", str(port)]
    return Running(command, f"http://127.0.0.1:{port}", TESSERACT_API_PATH=str(PEER_FILES / f"{api}.py"))


def has_bare() -> bool:
    """Whether the servers of `bare` can run: their parser comes with the peers."""
    return find_spec("httptools") is not None


def has_peers() -> bool:
    """Whether `make bench-service PEERS=1` has installed them."""
    return (PEERS / "tesseract-runtime").exists()


def free() -> int:
    """A port of the loopback that nobody has at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port
