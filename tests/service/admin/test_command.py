"""`gradserve doctor`: its lines, its JSON and its exit status."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from service.admin.diagnosis import Diagnosis, Verdict
from service.admin.doctor import CHECKS, run_checks
from service.cli import main
from service.core.settings import Settings
from service.store.remote import open_remote
from tests.service.cluster.serving import SECRET
from tests.service.store.conftest import s3_place, s3_server

__all__ = ["s3_place", "s3_server"]

Capture = pytest.CaptureFixture[str]


def broken_check(_: Settings) -> Diagnosis:
    raise KeyError("lost")


def run_doctor(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, checks: dict[str, Any], *flags: str
) -> tuple[int, str]:
    """Run the doctor, and return its exit status and output."""
    monkeypatch.setattr(run_checks, "__defaults__", (checks,))
    try:
        main(["doctor", *flags])
    except SystemExit as exit_:
        return int(exit_.code or 0), capsys.readouterr().out
    return 0, capsys.readouterr().out


def check_with(level: Verdict) -> Any:
    return lambda settings: Diagnosis(
        level, f"{settings.workers} workers", "mend it" if level is not Verdict.OK else ""
    )


def test_one_line_per_check(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {"first": check_with(Verdict.OK), "second": check_with(Verdict.WARN)}
    assert run_doctor(capsys, monkeypatch, checks, "--workers", "3") == (
        0, "ok    first        3 workers\nwarn  second       3 workers; mend it\n",
    )  # fmt: skip


def test_failed_check_sets_the_status_and_others_still_run(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = run_doctor(capsys, monkeypatch, {"first": broken_check, "second": check_with(Verdict.OK)})
    assert status == 1
    assert text.splitlines()[0].startswith("fail  first        the check itself failed: KeyError: 'lost'; ")
    assert text.splitlines()[1].startswith("ok    second")


def test_json_output(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {"first": check_with(Verdict.OK), "second": check_with(Verdict.FAIL)}
    status, text = run_doctor(capsys, monkeypatch, checks, "--json", "--workers", "3")
    assert status == 1
    assert orjson.loads(text) == {
        "ok": False,
        "checks": [
            {"check": "first", "level": "ok", "says": "3 workers", "advice": ""},
            {"check": "second", "level": "fail", "says": "3 workers", "advice": "mend it"},
        ],
    }


@pytest.mark.slow
def test_all_checks_run_on_this_machine(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    status, text = run_doctor(capsys, monkeypatch, dict(CHECKS), "--port", "0", "--device", "cpu")
    assert status == 0, text
    assert [line.split()[1] for line in text.splitlines()] == list(CHECKS)


@pytest.mark.slow
def test_all_checks_run_for_a_server_of_a_cluster(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, s3_place: str
) -> None:
    monkeypatch.setenv("GRADSERVE_CLUSTER_SECRET", SECRET)
    monkeypatch.setenv("GRADSERVE_STATE", s3_place)
    flags = ["--cluster", "on", "--cluster-address", "http://127.0.0.1:8000", "--port", "0", "--device", "cpu"]
    status, text = run_doctor(capsys, monkeypatch, dict(CHECKS), *flags)
    assert status == 0, text
    lines = {line.split()[1]: line.split(maxsplit=2) for line in text.splitlines()}
    assert lines["state"] == ["ok", "state", f"tensors and graphs are stored at {s3_place}"]
    assert lines["server"][0] == "ok"
    assert list(open_remote(s3_place).list("")) == [], "it leaves nothing behind, and owns no shard"
