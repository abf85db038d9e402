"""A copy of the project, to change and run in a test."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = (
    *("engine", "schemas", "service", "scripts", "examples", "docs", "tests", "pyproject.toml", "README.md"),
    "clients/python/gradserve_client",  # of which `make docs` writes a page
    "deploy/prometheus/alerts.yml",  # which the rules for the Prometheus Operator are generated from
)


def copy_tree(target: Path) -> Path:
    """Copy what a run of the tests needs into `target`."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part)
        else:
            (target / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target / part)
    return target


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python inside a copy."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False, timeout=300)
