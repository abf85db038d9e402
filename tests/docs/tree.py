"""A copy of the project, to change and run in a test."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ("engine", "schemas", "service", "scripts", "examples", "docs", "tests", "pyproject.toml", "README.md")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc")


def copy_tree(target: Path) -> Path:
    """Copy what a run of the tests needs into `target`."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=LEFT_OUT)
        else:
            shutil.copy(source, target / part)
    return target
