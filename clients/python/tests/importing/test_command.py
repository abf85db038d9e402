"""Errors and help of the import command."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from gradserve_client.importing import command


def test_unsupported_file_type_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["import", "net.pt"], io.StringIO()) == 1
    assert capsys.readouterr().err == "net.pt has the suffix .pt; supported suffixes: .onnx\n"


def test_missing_extra_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(command.IMPORTERS, ".net", "an_importer_that_nobody_has")
    assert command.main(["import", "net.net"], io.StringIO()) == 1
    expected = "an_importer_that_nobody_has is not installed: pip install 'gradserve-client[net]'\n"
    assert capsys.readouterr().err == expected


def test_module_runs_as_a_program() -> None:
    command_line = [sys.executable, "-m", "gradserve_client", "import", "--help"]
    folder = Path(command.__file__).parents[2]
    run = subprocess.run(command_line, capture_output=True, text=True, check=True, cwd=folder)
    assert "--dry-run" in run.stdout
