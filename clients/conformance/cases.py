"""The case files, and the part of a case that a program receives."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

Case = dict[str, Any]

FOLDER: Final = Path(__file__).parent
#: folder of the case files, which `clients.conformance.make` writes
GENERATED: Final = FOLDER / "generated"
#: kinds of files, in the order in which they run: those that need a server come last
KINDS: Final = ("tensors", "graphs", "exchanges", "live")
#: members of a case that the program does not receive
_OURS: Final = frozenset({"want", "saw", "answers"})


def read(kind: str) -> dict[str, Any]:
    """Return one file: its `kind` and its `cases`."""
    content: dict[str, Any] = json.loads((GENERATED / f"{kind}.json").read_text(encoding="utf-8"))
    return content


def cases(kinds: Sequence[str] = KINDS, prefix: str = "") -> Iterator[Case]:
    """Yield all cases of these kinds whose ids begin with `prefix`."""
    for kind in KINDS:
        if kind in kinds:
            yield from (case for case in read(kind)["cases"] if case["id"].startswith(prefix))


def program_input(case: Case, url: str | None) -> Case:
    """Return the part of a case that its program receives, with the `url` of the server, if it needs one."""
    visible = {name: value for name, value in case.items() if name not in _OURS}
    return visible if url is None else visible | {"url": url}
