"""The Java client: its printer's assumptions about the ops, its version and its dependencies."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from clients.printers import java
from engine import registry

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "java"
POM = CLIENT / "pom.xml"


def test_exact_attributes_match_the_ops() -> None:
    attributes = [(name, attr.kind) for op in registry().ops.values() for name, attr in op.attrs.items()]
    exact = {name for name, kind in attributes if kind == "number"}
    assert exact == java.EXACT
    assert not exact & {name for name, kind in attributes if kind == "float"}


def test_version_matches_the_server() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = CLIENT / "src" / "main" / "java" / "example" / "gradserve" / "Client.java"
    assert re.findall(r'String VERSION = "(.*)"', source.read_text(encoding="utf-8")) == [project["version"]]
    versions = re.findall(r"</artifactId>\n  <version>(.*)</version>", POM.read_text(encoding="utf-8"))
    assert versions == [project["version"]]


def test_depends_only_on_jackson_and_names_no_repository() -> None:
    text = POM.read_text(encoding="utf-8")
    needed = re.findall(r"<dependency>(.*?)</dependency>", text, re.DOTALL)
    assert [entry for entry in needed if "<scope>test</scope>" not in entry and "jackson-databind" not in entry] == []
    assert "epository" not in text
