"""Go's client: what its printer takes for granted of the ops, and what it says of itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from clients.printers import go
from engine import registry
from examples.server import running_server

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "go"


def test_numbers_keep_their_digits_where_ops_keep_them() -> None:
    attributes = [(name, attr.kind) for op in registry().ops.values() for name, attr in op.attrs.items()]
    exact = {name for name, kind in attributes if kind == "number"}
    assert exact == go.EXACT
    assert not exact & {name for name, kind in attributes if kind == "float"}


def test_its_version_is_the_servers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert re.findall(r'const Version = "(.*)"', (CLIENT / "client.go").read_text(encoding="utf-8")) == [
        project["version"]
    ]


def test_it_needs_the_standard_library_alone() -> None:
    assert "require" not in (CLIENT / "go.mod").read_text(encoding="utf-8")
    assert not (CLIENT / "go.sum").exists()


_MODULE = """module example

go 1.24

require gradserve.example/gradserve v0.0.0

replace gradserve.example/gradserve => {folder}
"""
_AROUND = """package main

import (
	"context"
	"fmt"

	gs "gradserve.example/gradserve"
)

func check(err error) {{
	if err != nil {{
		panic(err)
	}}
}}

{program}"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_the_program_of_its_page_runs(tmp_path: Path) -> None:
    (program,) = re.findall(r"```go\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (printed,) = re.findall(r"// (\[.*)", program)
    (tmp_path / "go.mod").write_text(_MODULE.format(folder=CLIENT), encoding="utf-8")
    with running_server("--device", "cpu", "--workers", "1") as url:
        text = _AROUND.format(program=program.replace("http://127.0.0.1:8000", url))
        (tmp_path / "main.go").write_text(text, encoding="utf-8")
        run = subprocess.run(["go", "run", "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout == f"{printed}\n", run.stderr
