"""`gradserve doctor`: its lines, its JSON, its status."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from service.admin.diagnosis import Diagnosis, Verdict
from service.admin.doctor import CHECKS, run_checks
from service.cli import main
from service.core.settings import Settings

Capture = pytest.CaptureFixture[str]


def broken_check(_: Settings) -> Diagnosis:
    raise KeyError("lost")


def diagnosed(capsys: Capture, monkeypatch: pytest.MonkeyPatch, checks: dict[str, Any], *flags: str) -> tuple[int, str]:
    """The status, and what was printed."""
    monkeypatch.setattr(run_checks, "__defaults__", (checks,))
    try:
        main(["doctor", *flags])
    except SystemExit as exit_:
        return int(exit_.code or 0), capsys.readouterr().out
    return 0, capsys.readouterr().out


def said(level: Verdict) -> Any:
    return lambda settings: Diagnosis(
        level, f"{settings.workers} workers", "mend it" if level is not Verdict.OK else ""
    )


def test_a_line_for_each_check(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {"first": said(Verdict.OK), "second": said(Verdict.WARN)}
    assert diagnosed(capsys, monkeypatch, checks, "--workers", "3") == (
        0, "ok    first        3 workers\nwarn  second       3 workers; mend it\n",
    )  # fmt: skip


def test_a_failure_is_the_status_and_hides_nothing(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = diagnosed(capsys, monkeypatch, {"first": broken_check, "second": said(Verdict.OK)})
    assert status == 1
    assert text.splitlines()[0].startswith("fail  first        the check itself failed: KeyError: 'lost'; ")
    assert text.splitlines()[1].startswith("ok    second")


def test_the_same_as_json(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {"first": said(Verdict.OK), "second": said(Verdict.FAIL)}
    status, text = diagnosed(capsys, monkeypatch, checks, "--json", "--workers", "3")
    assert status == 1
    assert orjson.loads(text) == {
        "ok": False,
        "checks": [
            {"check": "first", "level": "ok", "says": "3 workers", "advice": ""},
            {"check": "second", "level": "fail", "says": "3 workers", "advice": "mend it"},
        ],
    }


@pytest.mark.slow
def test_here_everything_is_looked_at(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = diagnosed(capsys, monkeypatch, dict(CHECKS), "--port", "0", "--device", "cpu")
    assert status == 0, text
    assert [line.split()[1] for line in text.splitlines()] == list(CHECKS)
