"""Mistakes made in a client on purpose: each has to be caught by some case."""

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
from clients.conformance.judging import Servers, Verdict, verdicts
from clients.conformance.languages import Language
from clients.conformance.programs import build


class Fault(NamedTuple):
    """A mistake: in `file` of the client's folder, `old` becomes `new`."""

    name: str
    file: str
    old: str
    new: str


def faults_of(language: Language) -> list[Fault]:
    """The mistakes that are stated beside a client."""
    stated = json.loads((language.folder / "faults.json").read_text(encoding="utf-8"))
    return [Fault(**fault) for fault in stated]


def caught(language: Language, fault: Fault, chosen: Sequence[Case], around: Servers) -> Verdict | None:
    """The first case that fails with the mistake, and not without it; None where none does."""
    with _copy(language, fault) as faulty:
        build(faulty)
        failing = (verdict for verdict in verdicts(faulty, chosen, around) if verdict.fault is not None)
        return next((verdict for verdict in failing if _passes(language, verdict.case, around)), None)


def _passes(language: Language, case: Case, around: Servers) -> bool:
    return all(verdict.fault is None for verdict in verdicts(language, [case], around))


@contextmanager
def _copy(language: Language, fault: Fault) -> Iterator[Language]:
    """The client in a folder of its own, with the mistake. Raises ValueError where `old` is not there once."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / language.folder.name
        # What CMake has made knows where it lies.
        shutil.copytree(language.folder, copy, symlinks=True, ignore=shutil.ignore_patterns("CMakeCache.txt"))
        file = copy / fault.file
        text = file.read_text(encoding="utf-8")
        if text.count(fault.old) != 1:
            raise ValueError(f"“{fault.name}”: what it replaces is {text.count(fault.old)} times in {fault.file}")
        file.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
        yield replace(language, folder=copy)
