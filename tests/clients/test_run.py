"""Steps that `make test-clients` skips, and those that make it fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clients import run
from clients.conformance.languages import Language

PASSES, FAILS = (sys.executable, "-c", ""), (sys.executable, "-c", "raise SystemExit(1)")


@pytest.fixture(autouse=True)
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The steps in addition to the clients' own tests; the only client takes no time."""
    done: list[list[str]] = []
    monkeypatch.setattr(run, "LANGUAGES", {"good": Language(tmp_path, (), (PASSES,), (PASSES,))})
    monkeypatch.setattr(run, "hold", done.append)
    monkeypatch.setattr(run, "with_servers", lambda name: FAILS if name == "forgetful" else PASSES)
    monkeypatch.setattr(run, "PAGE_NEEDS", ("sh",))
    monkeypatch.setattr(run, "page_is_current", lambda: done.append(["page"]) or True)
    monkeypatch.setattr(run, "generate", lambda arguments: done.append(["generated", *arguments]))
    return done


def test_all_steps_run(steps: list[list[str]]) -> None:
    assert run.main([]) == 0
    assert steps == [["--only", "good"], ["page"], ["generated"]]


@pytest.mark.parametrize(("arguments", "page"), [(["--ours"], [["page"]]), (["--only", "good"], [])])
def test_generated_clients_are_skipped(steps: list[list[str]], arguments: list[str], page: list[list[str]]) -> None:
    assert run.main(arguments) == 0
    assert steps == [["--only", "good"], *page]


def test_outdated_page_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "page_is_current", lambda: False)
    assert run.main(["--ours"]) == 1


def test_page_is_skipped_without_its_tools(
    monkeypatch: pytest.MonkeyPatch, steps: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "PAGE_NEEDS", ("no-such-command",))
    assert run.main(["--ours"]) == 0
    assert ["page"] not in steps
    assert "playground: not compared, since this machine lacks no-such-command" in capfd.readouterr().out
    assert run.main([]) == 1


@pytest.mark.parametrize("commands", [{"tests": (FAILS,)}, {"tests": (PASSES,), "build": (FAILS,)}])
def test_failing_client_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, commands: dict[str, object]
) -> None:
    monkeypatch.setitem(run.LANGUAGES, "bad", Language(tmp_path, (), **commands))
    assert run.main(["--ours"]) == 1


def test_lost_state_fails_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(run.LANGUAGES, "forgetful", Language(tmp_path, (), (PASSES,)))
    assert run.main(["--ours"]) == 1


def test_failing_cases_fail_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "hold", lambda _: 1)
    assert run.main(["--ours"]) == 1


def test_missing_tools_are_reported_or_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, steps: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    """Missing tools fail a run by hand; continuous integration only reports them."""
    monkeypatch.setitem(run.LANGUAGES, "far", Language(tmp_path, (), (FAILS,), needs=("sh", "no-such-command")))
    assert run.main(["--ours"]) == 0
    assert steps == [["--only", "good"], ["page"]]
    assert "far: not tried, since this machine lacks no-such-command" in capfd.readouterr().out
    assert run.main([]) == 1
