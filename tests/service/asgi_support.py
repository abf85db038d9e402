"""gradserve by a uvicorn that is started as its users start it, and within this process."""

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
_PATIENCE = 60


class Started:
    """A uvicorn on a free port; `url` is "" where it ended instead. What it says is `said`, whole once it has ended."""

    def __init__(self, target: str, *options: str, **environment: str) -> None:
        command = [sys.executable, "-m", "uvicorn", target, "--port", "0", "--no-access-log", *options]
        usual = {"GRADSERVE_DEVICE": "cpu", "GRADSERVE_WORKERS": "1", "GRADSERVE_LOG_LEVEL": "error"}
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **usual, **environment}
        )
        self.said = ""
        self.url = self._found()
        self._reading = Thread(target=self._read, daemon=True)
        self._reading.start()

    def _found(self) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line
            if found := _RUNNING.search(line):
                return found[1]
        return ""

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, for sockets."""
        parsed = urlsplit(self.url)
        return parsed.hostname or "", parsed.port or 80

    def client(self, **more: str) -> httpx.Client:
        """A client of it, with these headers."""
        return httpx.Client(base_url=self.url, timeout=_PATIENCE, headers=more)

    def end(self) -> int:
        """Have it end in order; its status."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Its status, once it has ended."""
        status = self.process.wait(_PATIENCE)
        self._reading.join(_PATIENCE)
        return status

    def close(self) -> None:
        """End it, in whatever state it is."""
        self.process.kill()
        self.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


Starter = Callable[..., Started]
