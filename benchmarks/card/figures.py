"""Figures of a card as JSON: what was measured, on what, and what was not run, for which reason."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final

from benchmarks.record import ROOT, machine

KEPT: Final = ROOT / "docs" / "card_report.json"
#: what a phase is called where none of its rows was run
WHOLE: Final = "all"
#: packages whose versions are told, by how their names begin: those of CUDA have its number behind
_PACKAGES: Final = ("cupy", "nvidia", "torch", "jax", "numpy", "llvmlite")
#: what nvidia-smi is asked
_ASKED: Final = ("name", "driver_version", "clocks.max.sm", "clocks.max.memory", "power.limit")

Row = dict[str, Any]


class CardFigures:
    """Rows by phase and name in a file, which is written after each.

    A row that was measured takes the place of an older one; one that was not run, only of another such.
    """

    def __init__(self, path: Path, where: Mapping[str, Any]) -> None:
        self._path, self._where = path, dict(where)
        self.phases: dict[str, dict[str, Row]] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def add(self, phase: str, name: str, row: Mapping[str, Any]) -> None:
        """Keep a row."""
        rows = self.phases.setdefault(phase, {})
        if "not_run" in row and any("not_run" not in rows[each] for each in rows if name in (each, WHOLE)):
            return
        rows.pop(WHOLE, None)
        rows[name] = {**row, "when": f"{datetime.now(UTC):%Y-%m-%d}", "where": self._where}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self.phases, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def where() -> dict[str, Any]:
    """The card with its clocks, as far as there is one, the processor, its cores, versions and the commit."""
    found = machine()
    return {
        "card": card(),
        "processor": found["processor"],
        "cores": len(os.sched_getaffinity(0)),
        "versions": {"Python": found["versions"]["Python"], **_versions()},
        "commit": found["commit"],
    }


def card() -> dict[str, str]:
    """What nvidia-smi tells of the first card; nothing, where there is none."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return {}
    query = [command, f"--query-gpu={','.join(_ASKED)}", "--format=csv,noheader", "--id=0"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    values = [value.strip() for value in done.stdout.strip().split(",")]
    return dict(zip(_ASKED, values, strict=True)) if not done.returncode and len(values) == len(_ASKED) else {}


def _versions() -> dict[str, str]:
    """Those of the packages that matter, of which there are several dozens of NVIDIA's."""
    names = {each.metadata["Name"].lower().replace("_", "-"): each.version for each in distributions()}
    return {name: names[name] for name in sorted(names) if name.startswith(_PACKAGES) and _is_told(name)}


def _is_told(name: str) -> bool:
    return not name.startswith("nvidia") or any(part in name for part in ("cublas", "cudnn", "nvrtc", "nvjitlink"))
