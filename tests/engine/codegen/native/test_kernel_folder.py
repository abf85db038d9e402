"""The folder of compiled kernels: its bound, and several processes that write, read and remove at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import engine
from engine.codegen.native.machine_code import KernelFolder, packed

ROOT = Path(engine.__file__).parents[1]
KEY, OTHER = "c" * 64, "d" * 64
CODE = bytes(range(256)) * 5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Not there yet."""
    return tmp_path / "kernels"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def used(folder: Path, key: str, when: int) -> None:
    os.utime(folder / f"{key}.kernel", (when, when))


def test_what_was_used_longest_ago_is_removed(folder: Path) -> None:
    keys = [f"{i:064x}" for i in range(4)]
    kept = KernelFolder(folder, most_bytes=3 * len(packed(KEY, CODE)))
    for when, key in enumerate(keys[:3], 1):
        kept.write_code(key, CODE)
        used(folder, key, when)
    assert kept.read_code(keys[0]) == CODE  # and so notes its use
    (folder / "notes.txt").write_bytes(bytes(10_000))
    kept.write_code(keys[3], CODE)
    assert [kept.read_code(key) is not None for key in keys] == [True, False, True, True]
    assert (folder / "notes.txt").exists(), "what is not ours is not removed"


def test_what_a_killed_writer_left_counts_and_goes(folder: Path) -> None:
    kept = KernelFolder(folder, most_bytes=2 * len(packed(KEY, CODE)))
    kept.write_code(KEY, CODE)
    left = folder / "0123.part"
    left.write_bytes(bytes(2 * len(CODE)))
    os.utime(left, (1, 1))
    kept.write_code(OTHER, CODE)
    assert names(folder) == {f"{KEY}.kernel", f"{OTHER}.kernel"}


def test_entries_are_not_counted_with_each_one_that_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: counted.append(folder) or scandir(folder))
    kept = KernelFolder(folder, most_bytes=32 * len(packed(KEY, CODE)))
    for i in range(7):
        kept.write_code(f"{i:064x}", CODE)
    assert len(counted) == 3  # at first, and after each three


def test_code_that_is_larger_than_all_may_be_is_not_written(folder: Path) -> None:
    KernelFolder(folder, most_bytes=len(CODE)).write_code(KEY, CODE)
    assert not folder.exists()


def test_an_entry_that_another_process_removes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: str, **__: int) -> None:
        raise FileNotFoundError

    kept = KernelFolder(folder, most_bytes=len(packed(KEY, CODE)))
    kept.write_code(KEY, CODE)
    used(folder, KEY, 1)
    monkeypatch.setattr(os, "unlink", gone)
    kept.write_code(OTHER, CODE)
    assert kept.read_code(OTHER) == CODE


WRITER = """
import sys
from pathlib import Path
from engine.codegen.native.machine_code import KernelFolder
key, code, folder = sys.argv[1], bytes(range(256)) * 2000, KernelFolder(Path(sys.argv[2]), 2 << 20)
sys.stdin.read(1)
for i in range(100):
    folder.write_code(key, code)
    folder.write_code(f"{i:064x}", code)
    assert folder.read_code(key) in (code, None), "torn"
"""


@pytest.mark.slow
def test_several_processes_write_and_read_at_once(folder: Path) -> None:
    """The bound is small: each removes what the others have written, while they read it."""
    command = [sys.executable, "-c", WRITER, KEY, str(folder)]
    writers = [subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"!")
        writer.stdin.flush()
    said = [writer.communicate()[1].decode() for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0], said
    assert not [name for name in names(folder) if name.endswith(".part")]
