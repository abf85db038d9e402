"""The Go client: its printer's assumptions about the ops, its version and its dependencies."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from clients.printers import go
from engine import registry

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "go"


def test_exact_attributes_match_the_ops() -> None:
    attributes = [(name, attr.kind) for op in registry().ops.values() for name, attr in op.attrs.items()]
    exact = {name for name, kind in attributes if kind == "number"}
    assert exact == go.EXACT
    assert not exact & {name for name, kind in attributes if kind == "float"}


def test_version_matches_the_server() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert re.findall(r'const Version = "(.*)"', (CLIENT / "client.go").read_text(encoding="utf-8")) == [
        project["version"]
    ]


def test_depends_only_on_the_standard_library() -> None:
    assert "require" not in (CLIENT / "go.mod").read_text(encoding="utf-8")
    assert not (CLIENT / "go.sum").exists()
