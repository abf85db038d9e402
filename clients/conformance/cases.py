"""The files of cases, and what of a case a program is told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

Case = dict[str, Any]

FOLDER: Final = Path(__file__).parent
#: the files of cases, written by `clients.conformance.make`
GENERATED: Final = FOLDER / "generated"
#: the kinds of files, in the order in which they are asked: what needs a server comes last
KINDS: Final = ("tensors", "graphs", "exchanges", "live")
#: what a program is not told
_OURS: Final = frozenset({"want", "saw", "answers"})


def read(kind: str) -> dict[str, Any]:
    """One file: its `kind` and its `cases`."""
    content: dict[str, Any] = json.loads((GENERATED / f"{kind}.json").read_text(encoding="utf-8"))
    return content


def cases(kinds: Sequence[str] = KINDS, prefix: str = "") -> Iterator[Case]:
    """All cases of files of these kinds whose ids begin so."""
    for kind in KINDS:
        if kind in kinds:
            yield from (case for case in read(kind)["cases"] if case["id"].startswith(prefix))


def told(case: Case, url: str | None) -> Case:
    """What a program gets of a case, asked of a server at `url`, where it has one."""
    shown = {name: value for name, value in case.items() if name not in _OURS}
    return shown if url is None else shown | {"url": url}
