"""`make generate`: machine-made files stand in folders of that name or are marked, and nothing else is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from clients import ops
from clients.conformance import make as conformance
from scripts import bessel_coefficients, build_docs, coefficients, generate, rooms, runner_ir
from scripts.build_docs import ROOT
from scripts.calls_table import PAGE as CALLS
from scripts.drawings.__main__ import drawings
from tests.machine_made import by_hand

#: pages that people write, with a part that is made
PARTLY = {build_docs.LOOPS, rooms.PAGE, CALLS}
PLAYGROUND = ROOT / "service" / "web" / "pages" / "generated" / "playground"


@pytest.fixture(scope="module")
def made() -> set[Path]:
    """The files that `make generate` writes whole."""
    return {
        *(coefficients.FILE, bessel_coefficients.FILE, runner_ir.IR_FILE),
        *ops.PRINTERS,
        *(conformance.GENERATED / f"{kind}.json" for kind in conformance.SOURCES),
        *(build_docs.pages().keys() - PARTLY),
        *(each.path for each in drawings()),
        *PLAYGROUND.iterdir(),
    }


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_all_are_marked(made: set[Path], tmp_path: Path) -> None:
    others = ["README.md", "clients/ops.py", "clients/python/gradserve_client/graph.py", "docs/architecture.md"]
    names = [path.relative_to(ROOT).as_posix() for path in made]
    assert by_hand([*names, *others], tmp_path) == others


@pytest.mark.slow
def test_folders_of_machine_made_files_have_no_others(made: set[Path]) -> None:
    tops = (ROOT / name for name in ("clients", "engine", "service", "schemas"))
    folders = [
        folder for top in tops for folder in top.rglob("generated")
        if not {"build", "target", "node_modules"} & set(folder.relative_to(ROOT).parts)
    ]  # fmt: skip
    there = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    others = {path for path in there - made if path.name != "__init__.py" and path.suffix != ".pyc"}
    assert len(folders) >= 10
    assert others == set()


@pytest.mark.slow
def test_the_polynomials_are_current() -> None:
    made = generate.polynomials()
    assert {path: path.read_text("utf-8") for path in made} == made


def test_a_check_names_what_is_not_current_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    current, stale, gone = tmp_path / "current", tmp_path / "new" / "stale", tmp_path / "gone"
    current.write_text("1")
    gone.write_text("3")
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "MAKERS", {"row": lambda _: {current: "1", stale: "2", gone: None}})
    assert not generate.bring_up_to_date("row", None, check=True)
    assert not stale.exists()
    assert capsys.readouterr().out == "row: new/stale is not current\nrow: gone is not current\n"
    assert not generate.bring_up_to_date("row", None, check=False)
    assert (stale.read_text(), gone.exists()) == ("2", False)
    assert generate.bring_up_to_date("row", None, check=True)


def test_a_row_without_its_tool_is_skipped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(generate, "MAKERS", {"drawings": generate.drawn_graphs})
    assert generate.bring_up_to_date("drawings", None, check=True)
    assert capsys.readouterr().out == "drawings: skipped, this needs Node\n"
