"""Java's client: what its printer takes for granted of the ops, and what it says of itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from clients.conformance.languages import LANGUAGES
from clients.conformance.programs import build
from clients.printers import java
from engine import registry
from examples.server import running_server

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


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("javac") is None, reason="Java is not installed")
@pytest.mark.skipif(not (CLIENT / "target" / "lib").exists(), reason="needs target/lib: make test-clients")
def test_the_program_of_its_page_runs(tmp_path: Path) -> None:
    build(LANGUAGES["java"])
    (program,) = re.findall(r"```java\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    path = f"{CLIENT / 'target' / 'classes'}:{CLIENT / 'target' / 'lib'}/*"
    with running_server("--device", "cpu", "--workers", "1") as url:
        (tmp_path / "Main.java").write_text(program.replace("http://127.0.0.1:8000", url), encoding="utf-8")
        run = subprocess.run(
            ["java", "-cp", path, "Main.java"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
    assert [round(float(number), 3) for number in re.findall(r"[\d.]+", run.stdout)] == [0.786, 0.84], run.stderr
