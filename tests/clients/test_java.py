"""Java's client: what its printer takes for granted of the ops, and what it says of itself."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from clients.printers import java
from engine import registry

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "java"
POM = CLIENT / "pom.xml"


def test_numbers_keep_their_digits_where_ops_keep_them() -> None:
    attributes = [(name, attr.kind) for op in registry().ops.values() for name, attr in op.attrs.items()]
    exact = {name for name, kind in attributes if kind == "number"}
    assert exact == java.EXACT
    assert not exact & {name for name, kind in attributes if kind == "float"}


def test_its_version_is_the_servers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = CLIENT / "src" / "main" / "java" / "example" / "gradserve" / "Client.java"
    assert re.findall(r'String VERSION = "(.*)"', source.read_text(encoding="utf-8")) == [project["version"]]
    stated = re.findall(r"</artifactId>\n  <version>(.*)</version>", POM.read_text(encoding="utf-8"))
    assert stated == [project["version"]]


def test_it_needs_jackson_alone_and_names_no_address() -> None:
    text = POM.read_text(encoding="utf-8")
    needed = re.findall(r"<dependency>(.*?)</dependency>", text, re.DOTALL)
    assert [entry for entry in needed if "<scope>test</scope>" not in entry and "jackson-databind" not in entry] == []
    assert "epository" not in text
