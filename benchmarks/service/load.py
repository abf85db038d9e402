"""Load from wrk: a closed loop, in which each connection sends as soon as it has its answer."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SCRIPT: Final = Path(__file__).with_name("load.lua")


@dataclass(frozen=True)
class Target:
    """A request that is sent over and over: the file has its body. Media types of the body and of the answer.

    `key` goes with it, where there is one.
    """

    url: str
    sent: str
    accepted: str
    file: Path
    key: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """Those that say all this."""
        stated = {"Content-Type": self.sent, "Accept": self.accepted}
        return stated | {"Authorization": f"Bearer {self.key}"} if self.key else stated


@dataclass(frozen=True)
class Found:
    """Answers a second, and milliseconds."""

    rate: float
    p50: float
    p99: float


def closed_loop(target: Target, connections: int, seconds: float) -> Found:
    """So many connections, so long. Raises RuntimeError where an answer was not 200, or none."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s", "-s", str(SCRIPT)]
    environment = {**os.environ, "BODY": str(target.file), "SENT": target.sent, "ACCEPTED": target.accepted}
    environment |= {"KEY": target.key} if target.key else {}
    done = subprocess.run([*command, target.url], env=environment, capture_output=True, text=True, check=True)
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    if found["refused"] or found["broken"] or not found["requests"]:
        raise RuntimeError(f"{target.url}: {found}")
    return Found(found["requests"] / found["seconds"], found["p50"], found["p99"])
