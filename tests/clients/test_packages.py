"""Packages of our clients: each client has one, and one is built and used."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from clients.conformance.languages import LANGUAGES
from clients.packages import go_module, run
from clients.packages.recipe import Recipe, recipes
from clients.tools import Failed, command
from examples.server import running_server


def test_each_client_has_a_package() -> None:
    assert set(recipes()) == set(LANGUAGES)


@pytest.mark.slow
def test_package_is_built_and_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "PACKAGES", tmp_path)
    with running_server("--device", "cpu", "--workers", "1") as url:
        assert run.tried("python", recipes()["python"], url)
        wrong = Recipe(package="-", program="main.py", pack=[], install=[], run="{python} -c print(0.786)")
        assert not run.tried("python", wrong, url)


def test_go_module_contains_all_files(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "go.mod").write_text("module a.example/b\n\ngo 1.24\n", encoding="utf-8")
    (tmp_path / "in" / "deep" / "c.go").write_text("package deep\n", encoding="utf-8")
    go_module.main(str(tmp_path / "in"), str(tmp_path), "0.2.0")
    folder = tmp_path / "a.example" / "b" / "@v"
    assert (folder / "v0.2.0.info").read_text(encoding="utf-8") == '{"Version": "v0.2.0"}'
    assert (folder / "v0.2.0.mod").read_bytes() == (tmp_path / "in" / "go.mod").read_bytes()
    with zipfile.ZipFile(folder / "v0.2.0.zip") as archive:
        assert set(archive.namelist()) == {"a.example/b@v0.2.0/go.mod", "a.example/b@v0.2.0/deep/c.go"}


def test_failed_command_reports_its_output(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"`sh -c 'echo \$A; exit 3'` ended with 3:\nheard"):
        command("sh -c 'echo $A; exit 3'", tmp_path, {"A": "heard"})
