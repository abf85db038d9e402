"""`make generate`: generated files are marked or in folders named `generated`, which hold nothing else."""

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

#: handwritten pages with a generated part
PARTLY_GENERATED = {build_docs.LOOPS, rooms.PAGE, CALLS}
PLAYGROUND = ROOT / "service" / "web" / "pages" / "generated" / "playground"


@pytest.fixture(scope="module")
def generated_files() -> set[Path]:
    """Return the files that `make generate` writes completely."""
    return {
        *(coefficients.FILE, bessel_coefficients.FILE, runner_ir.IR_FILE),
        *ops.PRINTERS,
        *(conformance.GENERATED / f"{kind}.json" for kind in conformance.SOURCES),
        *(build_docs.pages().keys() - PARTLY_GENERATED),
        *(each.path for each in drawings()),
        *PLAYGROUND.iterdir(),
    }


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_generated_files_are_marked(generated_files: set[Path], tmp_path: Path) -> None:
    others = ["README.md", "clients/ops.py", "clients/python/gradserve_client/graph.py", "docs/architecture.md"]
    names = [path.relative_to(ROOT).as_posix() for path in generated_files]
    assert by_hand([*names, *others], tmp_path) == others


@pytest.mark.slow
def test_generated_folders_contain_only_generated_files(generated_files: set[Path]) -> None:
    roots = (ROOT / name for name in ("clients", "engine", "service", "schemas"))
    folders = [
        folder for top in roots for folder in top.rglob("generated")
        if not {"build", "target", "node_modules"} & set(folder.relative_to(ROOT).parts)
    ]  # fmt: skip
    existing = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    others = {path for path in existing - generated_files if path.name != "__init__.py" and path.suffix != ".pyc"}
    assert len(folders) >= 10
    assert others == set()


@pytest.mark.slow
def test_polynomials_are_current() -> None:
    polynomials = generate.polynomials()
    assert {path: path.read_text("utf-8") for path in polynomials} == polynomials


def test_check_reports_stale_files_without_writing(
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


def test_maker_without_tool_is_skipped(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(generate, "MAKERS", {"drawings": generate.drawn_graphs})
    assert generate.bring_up_to_date("drawings", None, check=True)
    assert capsys.readouterr().out == "drawings: skipped, this needs Node\n"
