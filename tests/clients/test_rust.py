"""The Rust client: its printer's assumptions about the ops, its version and its dependencies."""

from __future__ import annotations

import tomllib
from pathlib import Path

from clients.printers import rust
from engine import registry

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "rust"
MANIFEST = tomllib.loads((CLIENT / "Cargo.toml").read_text(encoding="utf-8"))


def test_exact_attributes_match_the_ops() -> None:
    attributes = [(name, attr.kind) for op in registry().ops.values() for name, attr in op.attrs.items()]
    exact = {name for name, kind in attributes if kind == "number"}
    assert exact == rust.EXACT
    assert not exact & {name for name, kind in attributes if kind == "float"}


def test_version_matches_the_server() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert MANIFEST["package"]["version"] == project["version"]


def test_required_dependencies() -> None:
    required = {
        name for name, spec in MANIFEST["dependencies"].items() if not (isinstance(spec, dict) and spec.get("optional"))
    }
    assert required == {"base64", "serde_json", "ureq"}
