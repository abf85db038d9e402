"""Rust's client: what its printer takes for granted of the ops, and what it says of itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from clients.printers import rust
from engine import registry
from examples.server import running_server

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "rust"
MANIFEST = tomllib.loads((CLIENT / "Cargo.toml").read_text(encoding="utf-8"))


def test_numbers_keep_their_digits_where_ops_keep_them() -> None:
    attributes = [(name, attr.kind) for op in registry().ops.values() for name, attr in op.attrs.items()]
    exact = {name for name, kind in attributes if kind == "number"}
    assert exact == rust.EXACT
    assert not exact & {name for name, kind in attributes if kind == "float"}


def test_its_version_is_the_servers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert MANIFEST["package"]["version"] == project["version"]


def test_it_depends_on_what_it_says() -> None:
    stated = {
        name for name, of in MANIFEST["dependencies"].items() if not (isinstance(of, dict) and of.get("optional"))
    }
    assert stated == {"base64", "serde_json", "ureq"}


def test_what_it_is_locked_to_is_of_the_usual_registry() -> None:
    lock = tomllib.loads((CLIENT / "Cargo.lock").read_text(encoding="utf-8"))
    sources = {package.get("source") for package in lock["package"] if package["name"] != "gradserve-client"}
    assert sources == {"registry+https://github.com/rust-lang/crates.io-index"}


_MANIFEST = """[package]
name = "example"
version = "0.0.0"
edition = "2021"

[dependencies]
gradserve-client = {{ path = "{folder}", default-features = false }}

[workspace]
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="Rust is not installed")
def test_the_program_of_its_page_runs(tmp_path: Path) -> None:
    program, *_ = re.findall(r"```rust\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (printed,) = re.findall(r"// (\[.*)", program)
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text(_MANIFEST.format(folder=CLIENT), encoding="utf-8")
    shutil.copy(CLIENT / "Cargo.lock", tmp_path)
    with running_server("--device", "cpu", "--workers", "1") as url:
        (tmp_path / "src" / "main.rs").write_text(program.replace("http://127.0.0.1:8000", url), encoding="utf-8")
        run = subprocess.run(["cargo", "run", "--quiet"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout == f"{printed}\n", run.stderr
