"""Where compiled kernels are kept: every fault of a disk costs a compilation, and none a wrong or a foreign kernel."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import engine
from engine.codegen.native import machine_code as kernel_folder
from engine.codegen.native.machine_code import KernelFolder, KernelStore, kernel_key, packed, unpacked

ROOT = Path(engine.__file__).parents[1]
TARGET = {"system": "linux x86_64", "processor": "flags avx2 fma", "compiler": "llvmlite 0.50"}
KEY, OTHER = (kernel_key(text, **TARGET) for text in ("kernel a", "kernel b"))
CODE = bytes(range(256)) * 5
HEADER = len(packed(KEY, b""))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a store may keep things: not there yet."""
    return tmp_path / "cache" / "kernels"


@pytest.fixture
def entry(folder: Path) -> Path:
    """The file of KEY, written by one store and to be read by others."""
    KernelStore(folder).put(KEY, CODE)
    (found,) = folder.iterdir()
    return found


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says at the level of a warning."""
    return [r.getMessage() for r in caplog.records if r.name == "gradserve.kernels" and r.levelno >= logging.WARNING]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# ---------------------------------------------------------------- keys


def test_a_key_depends_on_all_that_the_code_depends_on() -> None:
    usual: dict[str, Any] = {"text": "kernel a", **TARGET}
    others = [{**usual, name: "other"} for name in usual]
    keys = [kernel_key(**facts) for facts in [usual, *others]]
    assert kernel_key(**usual) == KEY
    assert len(set(keys)) == len(usual) + 1
    assert all(len(bytes.fromhex(key)) == 32 for key in keys)


def test_what_ends_one_part_of_a_key_does_not_begin_the_next() -> None:
    assert kernel_key("ab", **{**TARGET, "system": "c"}) != kernel_key("a", **{**TARGET, "system": "bc"})


@pytest.mark.slow
def test_a_key_is_the_same_in_another_process() -> None:
    """Or nothing would ever be found: Python's own hashes differ from process to process."""
    program = f"from engine.codegen.native.machine_code import kernel_key as k; print(k('kernel a', **{TARGET!r}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == KEY


# ---------------------------------------------------------------- what is kept


def test_memory_alone() -> None:
    store = KernelStore()
    assert store.get(KEY) is None
    store.put(KEY, CODE)
    assert (store.get(KEY), store.get(OTHER)) == (CODE, None)


def test_memory_is_bounded_and_keeps_what_was_used_last() -> None:
    store = KernelStore(most_bytes=2 * len(CODE))
    for key in (KEY, OTHER, OTHER):
        store.put(key, CODE)
    assert store.get(KEY) == CODE
    store.put("00" * 32, CODE)
    assert [store.get(key) for key in (KEY, OTHER, "00" * 32)] == [CODE, None, CODE]
    store.put("11" * 32, CODE * 3)
    assert store.get("11" * 32) is None


def test_the_next_process_finds_what_this_one_wrote(entry: Path) -> None:
    assert KernelStore(entry.parent).get(KEY) == CODE
    assert KernelStore(entry.parent).get(OTHER) is None


def test_an_entry_is_read_once(entry: Path) -> None:
    store = KernelStore(entry.parent)
    assert store.get(KEY) == CODE
    entry.unlink()
    assert store.get(KEY) == CODE


def test_code_without_bytes_is_code(folder: Path) -> None:
    KernelStore(folder).put(KEY, b"")
    assert KernelStore(folder).get(KEY) == b""


def test_nothing_is_made_before_something_is_kept(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert KernelStore(folder).get(KEY) is None
    assert not folder.parent.exists()
    assert not complaints(caplog)


def test_folder_and_file_are_for_their_owner_alone(entry: Path) -> None:
    assert entry.parent.stat().st_mode & 0o777 == 0o700
    assert entry.stat().st_mode & 0o777 == 0o600


# ---------------------------------------------------------------- entries that are not what was written


@pytest.mark.parametrize("length", [0, 1, 15, 16, 20, 52, 60, HEADER - 1, HEADER, HEADER + 1, HEADER + len(CODE) - 1])
def test_an_entry_that_was_torn_is_absent_and_replaced(entry: Path, length: int) -> None:
    whole = entry.read_bytes()
    entry.write_bytes(whole[:length])
    store = KernelStore(entry.parent)
    assert store.get(KEY) is None
    store.put(KEY, CODE)
    assert entry.read_bytes() == whole


@pytest.mark.parametrize("place", [0, 15, 16, 19, 20, 51, 52, 59, 60, HEADER - 1, HEADER, HEADER + len(CODE) - 1])
@pytest.mark.parametrize("bit", [0, 7])
def test_an_entry_with_a_flipped_bit_is_absent(entry: Path, place: int, bit: int) -> None:
    flipped = bytearray(entry.read_bytes())
    flipped[place] ^= 1 << bit
    entry.write_bytes(flipped)
    assert KernelStore(entry.parent).get(KEY) is None


@pytest.mark.parametrize("more", [b"\0", CODE])
def test_an_entry_with_something_behind_it_is_absent(entry: Path, more: bytes) -> None:
    entry.write_bytes(entry.read_bytes() + more)
    assert KernelStore(entry.parent).get(KEY) is None


def test_the_entry_of_another_key_is_absent(entry: Path) -> None:
    entry.rename(entry.with_name(f"{OTHER}.kernel"))
    assert KernelStore(entry.parent).get(OTHER) is None


def test_an_entry_of_another_format_is_absent(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_folder, "_FORMAT", 2)
    assert KernelStore(entry.parent).get(KEY) is None


@pytest.mark.parametrize("content", [b"", b"\x7fELF" + bytes(500), b"gradserve kernel", bytes(HEADER)])
def test_a_foreign_file_is_absent(entry: Path, content: bytes) -> None:
    entry.write_bytes(content)
    assert KernelStore(entry.parent).get(KEY) is None


def test_what_is_packed_is_unpacked() -> None:
    assert unpacked(KEY, packed(KEY, CODE)) == CODE
    assert unpacked(OTHER, packed(KEY, CODE)) is None


def _folder(entry: Path) -> None:
    entry.mkdir()


def _link(entry: Path) -> None:
    elsewhere = entry.parent.with_name("elsewhere")
    elsewhere.write_bytes(packed(KEY, CODE))
    entry.symlink_to(elsewhere)


def _pipe(entry: Path) -> None:
    os.mkfifo(entry, 0o600)


@pytest.mark.parametrize("make", [_folder, _link, _pipe])
def test_what_is_no_file_is_absent(entry: Path, make: Callable[[Path], None]) -> None:
    entry.unlink()
    make(entry)
    assert KernelStore(entry.parent).get(KEY) is None


def test_what_stands_in_the_place_of_an_entry_is_replaced_not_followed(entry: Path) -> None:
    entry.unlink()
    _link(entry)
    KernelStore(entry.parent).put(KEY, CODE * 2)
    assert not entry.is_symlink()
    assert KernelStore(entry.parent).get(KEY) == CODE * 2
    assert entry.parent.with_name("elsewhere").read_bytes() == packed(KEY, CODE)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_that_others_may_write_is_absent_and_replaced(entry: Path, mode: int) -> None:
    entry.chmod(mode)
    store = KernelStore(entry.parent)
    assert store.get(KEY) is None
    store.put(KEY, CODE)
    assert KernelStore(entry.parent).get(KEY) == CODE


def test_an_entry_of_somebody_else_is_absent(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inode, fstat = entry.stat().st_ino, os.fstat
    monkeypatch.setattr(os, "fstat", lambda file: _foreign(fstat(file), inode))
    assert KernelStore(entry.parent).get(KEY) is None


def test_an_entry_that_cannot_be_read_is_absent(
    entry: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fail(monkeypatch, "open", errno.EACCES, when=lambda path, *_: str(path).endswith(".kernel"))
    assert KernelStore(entry.parent).get(KEY) is None
    assert not complaints(caplog)


def test_an_entry_that_is_larger_than_all_may_be_is_not_read(entry: Path) -> None:
    assert KernelFolder(entry.parent, most_bytes=len(CODE)).read_code(KEY) is None
    assert KernelFolder(entry.parent, most_bytes=HEADER + len(CODE)).read_code(KEY) == CODE


# ---------------------------------------------------------------- folders that cannot be used


def _foreign(status: os.stat_result, inode: int) -> os.stat_result:
    """The status as it would be if that one file belonged to somebody else."""
    return os.stat_result([*status[:4], status.st_uid + (status.st_ino == inode), *status[5:]])


def fail(monkeypatch: pytest.MonkeyPatch, call: str, number: int, when: Callable[..., bool] = lambda *_: True) -> None:
    """Have a call of `os` fail with this error number, as permissions of root's never do, and a disk rarely."""
    real = getattr(os, call)

    def failing(*arguments: Any, **options: Any) -> Any:
        if when(*arguments):
            raise OSError(number, os.strerror(number))
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, failing)


def works_in_memory(folder: Path) -> KernelStore:
    """A store that keeps what it is given although its folder cannot; nothing is left there."""
    store = KernelStore(folder)
    for key in (KEY, OTHER):
        assert store.get(key) is None
        store.put(key, CODE)
        assert store.get(key) == CODE
    return store


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_may_write_to_is_not_used(
    entry: Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    entry.parent.chmod(mode)
    works_in_memory(entry.parent)
    assert complaints(caplog) == [
        f"kernels are kept in memory alone, not in {entry.parent}: others may write to it (mode {mode:o})"
    ]
    assert names(entry.parent) == {entry.name}


def test_a_folder_that_others_may_read_is_used(entry: Path) -> None:
    entry.parent.chmod(0o755)
    assert KernelStore(entry.parent).get(KEY) == CODE


def test_a_folder_of_somebody_else_is_not_used(
    entry: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    inode, fstat = entry.parent.stat().st_ino, os.fstat
    monkeypatch.setattr(os, "fstat", lambda file: _foreign(fstat(file), inode))
    works_in_memory(entry.parent)
    (said,) = complaints(caplog)
    assert f"it belongs to user {os.geteuid() + 1}, and this is user {os.geteuid()}" in said
    assert names(entry.parent) == {entry.name}


def test_a_folder_is_looked_at_each_time(entry: Path) -> None:
    store = KernelStore(entry.parent)
    store.put(OTHER, CODE)
    entry.parent.chmod(0o777)
    assert store.get(KEY) is None


def test_a_file_in_the_place_of_the_folder(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.parent.mkdir()
    folder.write_bytes(b"")
    works_in_memory(folder)
    assert len(complaints(caplog)) == 1


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("write", errno.ENOSPC), ("write", errno.EDQUOT), ("write", errno.EIO), ("rename", errno.ENOSPC),
        ("rename", errno.EROFS), ("mkdir", errno.EROFS), ("mkdir", errno.EACCES), ("scandir", errno.EIO),
    ],
)  # fmt: skip
def test_a_folder_that_is_full_or_read_only_costs_one_line(
    call: str, number: int, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fail(monkeypatch, call, number)
    works_in_memory(folder)
    assert complaints(caplog) == [f"kernels are kept in memory alone, not in {folder}: {os.strerror(number)}"]
    assert not folder.exists() or not [name for name in names(folder) if name.endswith(".part")]


def test_what_a_read_only_folder_has_can_be_read(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(monkeypatch, "utime", errno.EROFS)
    assert KernelStore(entry.parent).get(KEY) == CODE


def test_a_disk_that_takes_a_little_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:100]))
    KernelStore(folder).put(KEY, CODE)
    assert KernelStore(folder).get(KEY) == CODE


def test_a_disk_that_has_room_again_is_written_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = KernelStore(folder)
    with monkeypatch.context() as full:
        fail(full, "write", errno.ENOSPC)
        store.put(KEY, CODE)
    store.put(OTHER, CODE)
    assert names(folder) == {f"{OTHER}.kernel"}


def test_a_system_that_cannot_check_folders_uses_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("engine.codegen.native.machine_code.FOLDERS_CAN_BE_CHECKED", False)
    works_in_memory(folder)
    assert len(complaints(caplog)) == 1
    assert not folder.exists()
