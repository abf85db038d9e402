"""Start gradserve under uvicorn, the way users do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from threading import Thread
from urllib.parse import urlsplit

import httpx

from tests.conftest import ROOT

_RUNNING = re.compile(r"Uvicorn running on (\S+)")
_TIMEOUT = 60


class UvicornProcess:
    """A uvicorn on a free port; `url` is "" if it exited instead. `output` is complete once it has exited."""

    def __init__(self, target: str, *options: str, **environment: str) -> None:
        command = [sys.executable, "-m", "uvicorn", target, "--port", "0", "--no-access-log", *options]
        defaults = {"GRADSERVE_DEVICE": "cpu", "GRADSERVE_WORKERS": "1", "GRADSERVE_LOG_LEVEL": "error"}
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **defaults, **environment}
        )
        self.output = ""
        self.url = self._read_url()
        self._reading = Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read_url(self) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.output += line
            if match := _RUNNING.search(line):
                return match[1]
        return ""

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.output += line

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, for sockets."""
        parsed = urlsplit(self.url)
        return parsed.hostname or "", parsed.port or 80

    def client(self, **headers: str) -> httpx.Client:
        """Create a client with these headers."""
        return httpx.Client(base_url=self.url, timeout=_TIMEOUT, headers=headers)

    def end(self) -> int:
        """Shut it down gracefully and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for it to exit and return its exit status."""
        status = self.process.wait(_TIMEOUT)
        self._reading.join(_TIMEOUT)
        return status

    def close(self) -> None:
        """Kill it, whatever its state."""
        self.process.kill()
        self.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


Starter = Callable[..., UvicornProcess]
