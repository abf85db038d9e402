"""A server started by its command, in a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.guarantees import processes
from tests.guarantees.talk import Address, once

ROOT = Path(__file__).parents[2]
ANNOUNCEMENT = "gradserve listening on "


class Started:
    """`gradserve serve` on a free port and the CPU. The caller must stop it."""

    def __init__(self, *options: str) -> None:
        command = [sys.executable, "-m", "service", "serve", "--port", "0", "--device", "cpu", *options]
        environment = {
            **os.environ,
            "GRADSERVE_LOG_LEVEL": "error",
            "GRADSERVE_CACHE_DIR": "none",
            "GRADSERVE_STATE": "memory",
        }
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith(ANNOUNCEMENT):
            self.process.communicate()
            raise RuntimeError(f"the server does not start: {line!r}")
        url = urlsplit(line.removeprefix(ANNOUNCEMENT).strip())
        self.address: Address = (url.hostname or "", url.port or 80)

    @property
    def pid(self) -> int:
        """The process ID of the front."""
        return self.process.pid

    @property
    def workers(self) -> list[int]:
        """The process IDs of the workers."""
        return processes.workers(self.pid)

    @property
    def resident(self) -> int:
        """The resident bytes of all its processes."""
        return processes.resident(self.pid)

    def settled(self, quiet: float = 3.0, change: int = 2 << 20, patience: float = 40.0) -> int:
        """Wait until the memory is stable, since spare workers start late, and return it."""
        end, since, level = time.monotonic() + patience, time.monotonic(), self.resident
        while time.monotonic() < end and time.monotonic() - since < quiet:
            time.sleep(0.2)
            if abs((now := self.resident) - level) > change:
                since, level = time.monotonic(), now
        return level

    def await_spare(self, patience: float = 30.0) -> None:
        """Wait until the spare worker has started, which is the last one."""
        end = time.monotonic() + patience
        while b'gradserve_workers{lane="spare"} 1.0' not in once(self.address, "/metrics", method="GET").body:
            assert time.monotonic() < end, "no spare worker has started"
            time.sleep(0.05)

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal to the front."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the front with SIGKILL, and wait until its workers have exited."""
        orphans = self._ended()
        deadline = time.monotonic() + 10
        while any(map(processes.exists, orphans)) and time.monotonic() < deadline:
            time.sleep(0.005)

    def stop(self) -> None:
        """Kill the server and its workers."""
        for pid in self._ended():  # they should exit by themselves; test_stopping.py checks that they do
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _ended(self) -> list[int]:
        """Kill the front, and return the process IDs of its workers, which may outlive it."""
        _, *orphans = processes.family(self.pid)
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return orphans
