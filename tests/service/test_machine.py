"""Container limits: the strictest limit among the control groups of a process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from service.core import machine

Files = Mapping[str, str]


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cgroup file system."""
    monkeypatch.setattr(machine, "_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "_OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)))
    return tmp_path


def write(root: Path, own: str, files: Files) -> None:
    (root / "own").write_text(own, encoding="ascii")
    for name, text in files.items():
        (root / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "cgroup" / name).write_text(text + "\n", encoding="ascii")


@pytest.mark.parametrize(
    ("own", "files", "processors"),
    [
        ("0::/", {}, 16),
        ("0::/", {"cpu.max": "max 100000"}, 16),
        ("0::/", {"cpu.max": "200000 100000"}, 2),
        ("0::/", {"cpu.max": "50000 100000"}, 1),
        ("0::/", {"cpu.max": "350000 100000"}, 3),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "400000 100000"}, 4),
        ("0::/not/here", {"cpu.max": "300000 100000"}, 3),
        ("4:cpu,cpuacct:/x", {"cpu/x/cpu.cfs_quota_us": "500000", "cpu/x/cpu.cfs_period_us": "100000"}, 5),
        ("4:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 16),
    ],
)
def test_cpu_limit(groups: Path, own: str, files: Files, processors: int) -> None:
    write(groups, own, files)
    assert machine.cpus() == processors


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/", {"memory.max": "1048576"}, 1 << 20),
        ("0::/", {"memory.max": "max"}, None),
        ("0::/", {}, None),
        ("0::/a/b", {"a/b/memory.max": "2097152", "a/memory.max": "1048576", "memory.max": "max"}, 1 << 20),
        ("3:memory:/docker/1", {"memory/docker/1/memory.limit_in_bytes": "1048576"}, 1 << 20),
        ("3:memory:/docker/1", {"memory/memory.limit_in_bytes": "1048576"}, 1 << 20),
        ("", {"memory.max": "1048576"}, 1 << 20),
    ],
)
def test_memory_limit(groups: Path, own: str, files: Files, expected: int | None) -> None:
    whole = machine.memory_bytes()
    write(groups, own, files)
    assert machine.memory_bytes() == (expected or whole)


def test_visible_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(machine, "_CARDS", tmp_path / "absent")
    assert machine.visible_gpus() == ()
    monkeypatch.setattr(machine, "_CARDS", tmp_path)
    for name in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / name).mkdir()
    assert machine.visible_gpus() == ("0", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert machine.visible_gpus() == ("1",)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert machine.visible_gpus() == ()
