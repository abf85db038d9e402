"""The program: found, and refused where it is missing or too old, with a sentence that says where to get it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from service.cluster.ingress import process as program
from service.cluster.ingress.process import haproxy_program


def stands_in(folder: Path, says: str) -> Path:
    """A program that says this of itself, where it has its libraries."""
    file = folder / "haproxy"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!{sys.executable}\nprint({says!r})\n", encoding="utf-8")
    file.chmod(0o755)
    return file


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the wheel, in which nothing is yet; nor is anything on the path."""
    monkeypatch.setattr(program, "find_spec", lambda _: SimpleNamespace(submodule_search_locations=[str(tmp_path)]))
    monkeypatch.setattr(program.shutil, "which", lambda *_, **__: None)
    return tmp_path / "bin"


@pytest.mark.parametrize(
    "line", ["HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/", "HAProxy version 3.0.1 2024/06/10"]
)
def test_the_wheels_is_found_with_its_libraries(wheel: Path, line: str) -> None:
    file = stands_in(wheel, line)
    found = haproxy_program()
    assert found.path == file
    assert found.version >= (2, 6)
    assert found.environment == {"LD_LIBRARY_PATH": str(wheel / "lib")}


def test_the_machines_comes_first(wheel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stands_in(wheel, "HAProxy version 2.8.25-5cf5d0683 2026/06/26")
    own = stands_in(tmp_path / "sbin", "HAProxy version 2.6.12")
    monkeypatch.setattr(program.shutil, "which", lambda *_, **__: str(own))
    assert haproxy_program() == (own, {}, (2, 6))


def test_one_that_is_too_old_is_passed_over(wheel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = stands_in(tmp_path / "sbin", "HAProxy version 2.2.9-2+deb11u6 2023/09/01")
    monkeypatch.setattr(program.shutil, "which", lambda *_, **__: str(old))
    newer = stands_in(wheel, "HAProxy version 2.8.25")
    assert haproxy_program().path == newer


@pytest.mark.usefixtures("wheel")
def test_where_there_is_none_the_sentence_says_where_to_get_it() -> None:
    with pytest.raises(RuntimeError) as refused:
        haproxy_program()
    said = "gradserve ingress needs HAProxy 2.6 or newer, and there is none; on Debian, apt-get install haproxy; "
    assert str(refused.value) == said + "elsewhere, pip install 'gradserve[cluster]'"


def test_where_all_are_too_old_it_says_that(wheel: Path) -> None:
    old = stands_in(wheel, "HA-Proxy version 1.8.27 2020/11/06")
    with pytest.raises(RuntimeError, match=rf"newer: {old} is no HAProxy that runs here; on Debian"):
        haproxy_program()
    stands_in(wheel, "HAProxy version 2.4.1")
    with pytest.raises(RuntimeError, match=rf"newer: {old} is HAProxy 2\.4; on Debian, apt-get install haproxy"):
        haproxy_program()
