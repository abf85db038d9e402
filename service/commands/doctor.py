"""`gradserve doctor`: all checks, the last of them a server on trial; a line for each, and what to do if it fails."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from service.doctor.diagnosis import Diagnosis, Verdict
from service.doctor.examination import examined
from service.settings import Settings


def run_doctor(settings: Settings, *, as_json: bool) -> bool:
    """Look, and print what was found; whether a server would do here."""
    found = examined(settings)
    levels = _print_json(found) if as_json else _print_lines(found)
    return Verdict.FAIL not in levels


def _print_lines(found: Iterable[tuple[str, Diagnosis]]) -> list[Verdict]:
    levels = []
    for name, (level, says, advice) in found:
        print(f"{level:5} {name:12} {says}{f'; {advice}' if advice else ''}", flush=True)
        levels.append(level)
    return levels


def _print_json(found: Iterable[tuple[str, Diagnosis]]) -> list[Verdict]:
    listed = [{"check": name, **finding._asdict()} for name, finding in found]
    levels = [each["level"] for each in listed]
    print(orjson.dumps({"ok": Verdict.FAIL not in levels, "checks": listed}, option=orjson.OPT_INDENT_2).decode())
    return levels
