"""Where the clients are, and how the program of each is built and started, in the client's folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CLIENTS: Final = Path(__file__).parents[1]


@dataclass(frozen=True)
class Language:
    """A client: its folder, the commands that build its program there, and the one that starts it."""

    folder: Path
    start: Sequence[str]
    build: Sequence[Sequence[str]] = ()


LANGUAGES: Final = {
    "go": Language(
        CLIENTS / "go", ("./build/conformance",), (("go", "build", "-o", "build/conformance", "./cmd/conformance"),)
    ),
    "python": Language(CLIENTS / "python", (sys.executable, "conformance.py")),
}
