"""What was measured, as a JSON file: rows by group and name, each with when, where and on what it was measured."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DEFAULT = ROOT / "build" / "benchmarks" / "results.json"
PACKAGES = ("numpy", "llvmlite", "torch", "jax", "autograd")


class Results:
    """Rows in a file, which is written after each: a run that is stopped has kept what it found."""

    def __init__(self, path: Path, device: str) -> None:
        self._path = path
        self._where = {**machine(), "device": device}
        self.groups: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def heading(self) -> str:
        """Where and on what, in a line."""
        kept = self._where
        versions = ", ".join(f"{name} {number}" for name, number in kept["versions"].items())
        return f"{kept['processor']}, {kept['cores']} cores, load {kept['load']:.1f}; {versions}; {kept['commit']}"

    def add(self, group: str, name: str, row: dict[str, Any]) -> None:
        """Keep a row, in place of an older one."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
        self.groups.setdefault(group, {})[name] = {**row, "when": now, "where": self._where}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self.groups, indent=1), encoding="utf-8")


def machine() -> dict[str, Any]:
    """The processor, its cores that this process may use, the load, the versions and the commit."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "versions": {"Python": platform.python_version(), **_versions()},
        "commit": _commit(),
    }


def _processor() -> str:
    for row in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if row.startswith("model name"):
            return row.partition(":")[2].strip()
    return platform.machine()


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "no commit"
