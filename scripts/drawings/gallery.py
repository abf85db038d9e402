"""Graphs of the gallery, from its files."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from scripts.drawings.drawn import ROOT, Drawn

FOLDER: Final = ROOT / "examples" / "gallery"


@cache
def gallery() -> dict[str, dict[str, Any]]:
    """Return the content of each file, by name without `.json`."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.json"))}


def _read(path: Path) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return entry


def gallery_drawings() -> dict[str, Drawn]:
    """Return the drawings of the gallery, at the paths that its files state."""
    return {
        name: Drawn(
            entry["drawing"].removeprefix("docs/").removesuffix(".svg"), entry["title"], entry["request"]["graph"]
        )
        for name, entry in gallery().items()
    }
