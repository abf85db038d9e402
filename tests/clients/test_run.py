"""What `make test-clients` passes over, and what it fails for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clients import run
from clients.conformance.languages import Language

PASSES, FAILS = (sys.executable, "-c", ""), (sys.executable, "-c", "raise SystemExit(1)")


@pytest.fixture(autouse=True)
def held(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """What is done beside the clients' own tests; the one client takes no time."""
    done: list[list[str]] = []
    monkeypatch.setattr(run, "LANGUAGES", {"good": Language(tmp_path, (), (PASSES,), (PASSES,))})
    monkeypatch.setattr(run, "hold", done.append)
    monkeypatch.setattr(run, "with_servers", lambda name: FAILS if name == "forgetful" else PASSES)
    monkeypatch.setattr(run, "PAGE_NEEDS", ("sh",))
    monkeypatch.setattr(run, "page_is_current", lambda: done.append(["page"]) or True)
    monkeypatch.setattr(run, "generate", lambda arguments: done.append(["generated", *arguments]))
    return done


def test_all_are_tried(held: list[list[str]]) -> None:
    assert run.main([]) == 0
    assert held == [["--only", "good"], ["page"], ["generated"]]


@pytest.mark.parametrize(("arguments", "page"), [(["--ours"], [["page"]]), (["--only", "good"], [])])
def test_generated_ones_are_left_out(held: list[list[str]], arguments: list[str], page: list[list[str]]) -> None:
    assert run.main(arguments) == 0
    assert held == [["--only", "good"], *page]


def test_the_page_is_out_of_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "page_is_current", lambda: False)
    assert run.main(["--ours"]) == 1


def test_the_page_is_not_compared_without_its_tools(
    monkeypatch: pytest.MonkeyPatch, held: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "PAGE_NEEDS", ("no-such-command",))
    assert run.main(["--ours"]) == 0
    assert ["page"] not in held
    assert "playground: not compared, since this machine lacks no-such-command" in capfd.readouterr().out
    assert run.main([]) == 1


@pytest.mark.parametrize("commands", [{"tests": (FAILS,)}, {"tests": (PASSES,), "build": (FAILS,)}])
def test_a_client_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, commands: dict[str, object]) -> None:
    monkeypatch.setitem(run.LANGUAGES, "bad", Language(tmp_path, (), **commands))
    assert run.main(["--ours"]) == 1


def test_what_was_kept_is_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(run.LANGUAGES, "forgetful", Language(tmp_path, (), (PASSES,)))
    assert run.main(["--ours"]) == 1


def test_cases_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "hold", lambda _: 1)
    assert run.main(["--ours"]) == 1


def test_what_the_machine_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, held: list[list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    """By hand it is a failure; in continuous integration it is said."""
    monkeypatch.setitem(run.LANGUAGES, "far", Language(tmp_path, (), (FAILS,), needs=("sh", "no-such-command")))
    assert run.main(["--ours"]) == 0
    assert held == [["--only", "good"], ["page"]]
    assert "far: not tried, since this machine lacks no-such-command" in capfd.readouterr().out
    assert run.main([]) == 1
