"""Rust's client: what its printer takes for granted of the ops, and what it says of itself."""

from __future__ import annotations

import tomllib
from pathlib import Path

from clients.printers import rust
from engine import registry

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
