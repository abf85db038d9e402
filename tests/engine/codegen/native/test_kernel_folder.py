"""Folder of compiled kernels: its size limit, and several processes that write, read and remove at once."""

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
    """A folder that does not exist yet."""
    return tmp_path / "kernels"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def set_last_use(folder: Path, key: str, when: int) -> None:
    os.utime(folder / f"{key}.kernel", (when, when))


def test_least_recently_used_entry_is_evicted(folder: Path) -> None:
    keys = [f"{i:064x}" for i in range(4)]
    kernels = KernelFolder(folder, most_bytes=3 * len(packed(KEY, CODE)))
    for when, key in enumerate(keys[:3], 1):
        kernels.write_code(key, CODE)
        set_last_use(folder, key, when)
    assert kernels.read_code(keys[0]) == CODE  # and so updates its time of use
    (folder / "notes.txt").write_bytes(bytes(10_000))
    kernels.write_code(keys[3], CODE)
    assert [kernels.read_code(key) is not None for key in keys] == [True, False, True, True]
    assert (folder / "notes.txt").exists(), "what is not ours is not removed"


def test_partial_file_of_a_killed_writer_is_evicted(folder: Path) -> None:
    kernels = KernelFolder(folder, most_bytes=2 * len(packed(KEY, CODE)))
    kernels.write_code(KEY, CODE)
    partial = folder / "0123.part"
    partial.write_bytes(bytes(2 * len(CODE)))
    os.utime(partial, (1, 1))
    kernels.write_code(OTHER, CODE)
    assert names(folder) == {f"{KEY}.kernel", f"{OTHER}.kernel"}


def test_entries_are_not_counted_on_every_write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scans: list[int] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: scans.append(folder) or scandir(folder))
    kernels = KernelFolder(folder, most_bytes=32 * len(packed(KEY, CODE)))
    for i in range(7):
        kernels.write_code(f"{i:064x}", CODE)
    assert len(scans) == 3  # at first, and after every third write


def test_code_over_the_size_limit_is_not_written(folder: Path) -> None:
    KernelFolder(folder, most_bytes=len(CODE)).write_code(KEY, CODE)
    assert not folder.exists()


def test_eviction_tolerates_removal_by_another_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: str, **__: int) -> None:
        raise FileNotFoundError

    kernels = KernelFolder(folder, most_bytes=len(packed(KEY, CODE)))
    kernels.write_code(KEY, CODE)
    set_last_use(folder, KEY, 1)
    monkeypatch.setattr(os, "unlink", gone)
    kernels.write_code(OTHER, CODE)
    assert kernels.read_code(OTHER) == CODE


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
def test_concurrent_writers_and_readers(folder: Path) -> None:
    """The limit is small: each process evicts entries of the others while they read them."""
    command = [sys.executable, "-c", WRITER, KEY, str(folder)]
    writers = [subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"!")
        writer.stdin.flush()
    errors = [writer.communicate()[1].decode() for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0, 0], errors
    assert not [name for name in names(folder) if name.endswith(".part")]
