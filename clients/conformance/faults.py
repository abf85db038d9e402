"""Mutation tests of the cases: a fault seeded into a client must fail at least one case."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from clients.conformance.cases import Case
from clients.conformance.languages import Language
from clients.conformance.programs import build
from clients.conformance.verdicts import Servers, Verdict, verdicts


class Fault(NamedTuple):
    """Seeded fault: `old` is replaced with `new` in `file`, relative to the client's folder."""

    name: str
    file: str
    old: str
    new: str


def faults_of(language: Language) -> list[Fault]:
    """Return the faults listed in a client's folder."""
    stated = json.loads((language.folder / "faults.json").read_text(encoding="utf-8"))
    return [Fault(**fault) for fault in stated]


def caught(language: Language, fault: Fault, chosen: Sequence[Case], running: Servers) -> Verdict | None:
    """Return the first case that fails with the fault and passes without it, or None."""
    with _copy(language, fault) as faulty:
        build(faulty)
        failing = (verdict for verdict in verdicts(faulty, chosen, running) if verdict.fault is not None)
        return next((verdict for verdict in failing if _passes(language, verdict.case, running)), None)


def _passes(language: Language, case: Case, running: Servers) -> bool:
    return all(verdict.fault is None for verdict in verdicts(language, [case], running))


@contextmanager
def _copy(language: Language, fault: Fault) -> Iterator[Language]:
    """Copy the client to a temporary folder and seed the fault. Raises ValueError unless `old` occurs exactly once."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / language.folder.name
        # CMake's cache contains absolute paths of the original folder.
        shutil.copytree(language.folder, copy, symlinks=True, ignore=shutil.ignore_patterns("CMakeCache.txt"))
        file = copy / fault.file
        text = file.read_text(encoding="utf-8")
        if text.count(fault.old) != 1:
            raise ValueError(f"“{fault.name}”: what it replaces is {text.count(fault.old)} times in {fault.file}")
        file.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
        yield replace(language, folder=copy)
