"""The graphs of the gallery, as their files have them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

from scripts.drawings.drawn import ROOT, Drawn

FOLDER: Final = ROOT / "examples" / "gallery"


@cache
def gallery() -> dict[str, dict[str, Any]]:
    """What each file says, by its name without the `.json`."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.json"))}


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def gallery_drawings() -> dict[str, Drawn]:
    """Their drawings, where the files say that these lie."""
    return {
        name: Drawn(said["drawing"].removeprefix("docs/").removesuffix(".svg"), said["title"], said["request"]["graph"])
        for name, said in gallery().items()
    }
