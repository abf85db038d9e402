"""Search for the HAProxy program, and errors with installation advice if it is missing or too old."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from service.cluster.ingress import process as program
from service.cluster.ingress.process import haproxy_program


def fake_haproxy(folder: Path, says: str) -> Path:
    """Create a program that prints this version."""
    file = folder / "haproxy"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!{sys.executable}\nprint({says!r})\n", encoding="utf-8")
    file.chmod(0o755)
    return file


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The empty folder of the wheel; the path has no HAProxy either."""
    monkeypatch.setattr(program, "find_spec", lambda _: SimpleNamespace(submodule_search_locations=[str(tmp_path)]))
    monkeypatch.setattr(program.shutil, "which", lambda *_, **__: None)
    return tmp_path / "bin"


@pytest.mark.parametrize(
    "line", ["HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/", "HAProxy version 3.0.1 2024/06/10"]
)
def test_program_of_the_wheel_is_found_with_its_libraries(wheel: Path, line: str) -> None:
    file = fake_haproxy(wheel, line)
    haproxy = haproxy_program()
    assert haproxy.path == file
    assert haproxy.version >= (2, 6)
    assert haproxy.environment == {"LD_LIBRARY_PATH": str(wheel / "lib")}


def test_installed_program_is_preferred(wheel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_haproxy(wheel, "HAProxy version 2.8.25-5cf5d0683 2026/06/26")
    own = fake_haproxy(tmp_path / "sbin", "HAProxy version 2.6.12")
    monkeypatch.setattr(program.shutil, "which", lambda *_, **__: str(own))
    assert haproxy_program() == (own, {}, (2, 6))


def test_too_old_program_is_skipped(wheel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = fake_haproxy(tmp_path / "sbin", "HAProxy version 2.2.9-2+deb11u6 2023/09/01")
    monkeypatch.setattr(program.shutil, "which", lambda *_, **__: str(old))
    newer = fake_haproxy(wheel, "HAProxy version 2.8.25")
    assert haproxy_program().path == newer


@pytest.mark.usefixtures("wheel")
def test_missing_program_is_reported_with_advice() -> None:
    with pytest.raises(RuntimeError) as refused:
        haproxy_program()
    message = "gradserve ingress needs HAProxy 2.6 or newer, but none was found; on Debian, apt-get install haproxy; "
    assert str(refused.value) == message + "elsewhere, pip install 'gradserve[cluster]'"


def test_too_old_programs_are_reported(wheel: Path) -> None:
    old = fake_haproxy(wheel, "HA-Proxy version 1.8.27 2020/11/06")
    with pytest.raises(RuntimeError, match=rf"newer: {old} does not run here; on Debian"):
        haproxy_program()
    fake_haproxy(wheel, "HAProxy version 2.4.1")
    with pytest.raises(RuntimeError, match=rf"newer: {old} is HAProxy 2\.4; on Debian, apt-get install haproxy"):
        haproxy_program()
