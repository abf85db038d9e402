"""Store of compiled kernels: faults of a disk cost a compilation, and never give a wrong or a foreign kernel."""

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
    """A folder for a store, which does not exist yet."""
    return tmp_path / "cache" / "kernels"


@pytest.fixture
def entry(folder: Path) -> Path:
    """The file of KEY, written by one store, for others to read."""
    KernelStore(folder).put(KEY, CODE)
    (path,) = folder.iterdir()
    return path


def logged_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings in the log."""
    return [r.getMessage() for r in caplog.records if r.name == "gradserve.kernels" and r.levelno >= logging.WARNING]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# ---------------------------------------------------------------- keys


def test_key_depends_on_text_and_target() -> None:
    usual: dict[str, Any] = {"text": "kernel a", **TARGET}
    others = [{**usual, name: "other"} for name in usual]
    keys = [kernel_key(**facts) for facts in [usual, *others]]
    assert kernel_key(**usual) == KEY
    assert len(set(keys)) == len(usual) + 1
    assert all(len(bytes.fromhex(key)) == 32 for key in keys)


def test_key_separates_its_parts() -> None:
    assert kernel_key("ab", **{**TARGET, "system": "c"}) != kernel_key("a", **{**TARGET, "system": "bc"})


@pytest.mark.slow
def test_key_is_the_same_in_another_process() -> None:
    """Python's own hashes differ from process to process, and would never hit."""
    program = f"from engine.codegen.native.machine_code import kernel_key as k; print(k('kernel a', **{TARGET!r}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == KEY


# ---------------------------------------------------------------- hits and misses


def test_store_without_a_folder() -> None:
    store = KernelStore()
    assert store.get(KEY) is None
    store.put(KEY, CODE)
    assert (store.get(KEY), store.get(OTHER)) == (CODE, None)


def test_memory_evicts_the_least_recently_used_entry() -> None:
    store = KernelStore(most_bytes=2 * len(CODE))
    for key in (KEY, OTHER, OTHER):
        store.put(key, CODE)
    assert store.get(KEY) == CODE
    store.put("00" * 32, CODE)
    assert [store.get(key) for key in (KEY, OTHER, "00" * 32)] == [CODE, None, CODE]
    store.put("11" * 32, CODE * 3)
    assert store.get("11" * 32) is None


def test_other_stores_find_the_entry(entry: Path) -> None:
    assert KernelStore(entry.parent).get(KEY) == CODE
    assert KernelStore(entry.parent).get(OTHER) is None


def test_entry_is_read_once(entry: Path) -> None:
    store = KernelStore(entry.parent)
    assert store.get(KEY) == CODE
    entry.unlink()
    assert store.get(KEY) == CODE


def test_empty_code_is_stored(folder: Path) -> None:
    KernelStore(folder).put(KEY, b"")
    assert KernelStore(folder).get(KEY) == b""


def test_folder_is_created_with_the_first_entry(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert KernelStore(folder).get(KEY) is None
    assert not folder.parent.exists()
    assert not logged_warnings(caplog)


def test_folder_and_file_are_private_to_their_owner(entry: Path) -> None:
    assert entry.parent.stat().st_mode & 0o777 == 0o700
    assert entry.stat().st_mode & 0o777 == 0o600


# ---------------------------------------------------------------- damaged and foreign entries


@pytest.mark.parametrize("length", [0, 1, 15, 16, 20, 52, 60, HEADER - 1, HEADER, HEADER + 1, HEADER + len(CODE) - 1])
def test_torn_entry_is_a_miss_and_replaced(entry: Path, length: int) -> None:
    whole = entry.read_bytes()
    entry.write_bytes(whole[:length])
    store = KernelStore(entry.parent)
    assert store.get(KEY) is None
    store.put(KEY, CODE)
    assert entry.read_bytes() == whole


@pytest.mark.parametrize("place", [0, 15, 16, 19, 20, 51, 52, 59, 60, HEADER - 1, HEADER, HEADER + len(CODE) - 1])
@pytest.mark.parametrize("bit", [0, 7])
def test_entry_with_a_flipped_bit_is_a_miss(entry: Path, place: int, bit: int) -> None:
    flipped = bytearray(entry.read_bytes())
    flipped[place] ^= 1 << bit
    entry.write_bytes(flipped)
    assert KernelStore(entry.parent).get(KEY) is None


@pytest.mark.parametrize("more", [b"\0", CODE])
def test_entry_with_trailing_bytes_is_a_miss(entry: Path, more: bytes) -> None:
    entry.write_bytes(entry.read_bytes() + more)
    assert KernelStore(entry.parent).get(KEY) is None


def test_entry_of_another_key_is_a_miss(entry: Path) -> None:
    entry.rename(entry.with_name(f"{OTHER}.kernel"))
    assert KernelStore(entry.parent).get(OTHER) is None


def test_entry_of_another_format_is_a_miss(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_folder, "_FORMAT", 2)
    assert KernelStore(entry.parent).get(KEY) is None


@pytest.mark.parametrize("content", [b"", b"\x7fELF" + bytes(500), b"gradserve kernel", bytes(HEADER)])
def test_foreign_file_is_a_miss(entry: Path, content: bytes) -> None:
    entry.write_bytes(content)
    assert KernelStore(entry.parent).get(KEY) is None


def test_unpacked_reverses_packed() -> None:
    assert unpacked(KEY, packed(KEY, CODE)) == CODE
    assert unpacked(OTHER, packed(KEY, CODE)) is None


def _folder(entry: Path) -> None:
    entry.mkdir()


def _link(entry: Path) -> None:
    target = entry.parent.with_name("elsewhere")
    target.write_bytes(packed(KEY, CODE))
    entry.symlink_to(target)


def _pipe(entry: Path) -> None:
    os.mkfifo(entry, 0o600)


@pytest.mark.parametrize("make", [_folder, _link, _pipe])
def test_entry_that_is_no_regular_file_is_a_miss(entry: Path, make: Callable[[Path], None]) -> None:
    entry.unlink()
    make(entry)
    assert KernelStore(entry.parent).get(KEY) is None


def test_symlink_is_replaced_and_not_followed(entry: Path) -> None:
    entry.unlink()
    _link(entry)
    KernelStore(entry.parent).put(KEY, CODE * 2)
    assert not entry.is_symlink()
    assert KernelStore(entry.parent).get(KEY) == CODE * 2
    assert entry.parent.with_name("elsewhere").read_bytes() == packed(KEY, CODE)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_entry_writable_by_others_is_a_miss_and_replaced(entry: Path, mode: int) -> None:
    entry.chmod(mode)
    store = KernelStore(entry.parent)
    assert store.get(KEY) is None
    store.put(KEY, CODE)
    assert KernelStore(entry.parent).get(KEY) == CODE


def test_entry_of_another_user_is_a_miss(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inode, fstat = entry.stat().st_ino, os.fstat
    monkeypatch.setattr(os, "fstat", lambda file: _foreign(fstat(file), inode))
    assert KernelStore(entry.parent).get(KEY) is None


def test_unreadable_entry_is_a_miss(
    entry: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fail(monkeypatch, "open", errno.EACCES, when=lambda path, *_: str(path).endswith(".kernel"))
    assert KernelStore(entry.parent).get(KEY) is None
    assert not logged_warnings(caplog)


def test_entry_over_the_size_limit_is_not_read(entry: Path) -> None:
    assert KernelFolder(entry.parent, most_bytes=len(CODE)).read_code(KEY) is None
    assert KernelFolder(entry.parent, most_bytes=HEADER + len(CODE)).read_code(KEY) == CODE


# ---------------------------------------------------------------- folders that cannot be used


def _foreign(status: os.stat_result, inode: int) -> os.stat_result:
    """Return the status, with another owner if it is that of one file."""
    return os.stat_result([*status[:4], status.st_uid + (status.st_ino == inode), *status[5:]])


def fail(monkeypatch: pytest.MonkeyPatch, call: str, number: int, when: Callable[..., bool] = lambda *_: True) -> None:
    """Make a call of `os` fail with this error number: root ignores permissions, and disks rarely fail."""
    real = getattr(os, call)

    def failing(*arguments: Any, **options: Any) -> Any:
        if when(*arguments):
            raise OSError(number, os.strerror(number))
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, failing)


def assert_works_in_memory(folder: Path) -> KernelStore:
    """Assert that a store with an unusable folder keeps its entries in memory."""
    store = KernelStore(folder)
    for key in (KEY, OTHER):
        assert store.get(key) is None
        store.put(key, CODE)
        assert store.get(key) == CODE
    return store


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
def test_folder_writable_by_others_is_not_used(entry: Path, mode: int, caplog: pytest.LogCaptureFixture) -> None:
    entry.parent.chmod(mode)
    assert_works_in_memory(entry.parent)
    assert logged_warnings(caplog) == [
        f"cannot use {entry.parent}, so kernels are only in memory: other users can write to it (mode {mode:o})"
    ]
    assert names(entry.parent) == {entry.name}


def test_folder_readable_by_others_is_used(entry: Path) -> None:
    entry.parent.chmod(0o755)
    assert KernelStore(entry.parent).get(KEY) == CODE


def test_folder_of_another_user_is_not_used(
    entry: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    inode, fstat = entry.parent.stat().st_ino, os.fstat
    monkeypatch.setattr(os, "fstat", lambda file: _foreign(fstat(file), inode))
    assert_works_in_memory(entry.parent)
    (warning,) = logged_warnings(caplog)
    assert f"it belongs to user {os.geteuid() + 1}, and this is user {os.geteuid()}" in warning
    assert names(entry.parent) == {entry.name}


def test_folder_is_checked_on_each_access(entry: Path) -> None:
    store = KernelStore(entry.parent)
    store.put(OTHER, CODE)
    entry.parent.chmod(0o777)
    assert store.get(KEY) is None


def test_file_in_the_place_of_the_folder(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.parent.mkdir()
    folder.write_bytes(b"")
    assert_works_in_memory(folder)
    assert len(logged_warnings(caplog)) == 1


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("write", errno.ENOSPC), ("write", errno.EDQUOT), ("write", errno.EIO), ("rename", errno.ENOSPC),
        ("rename", errno.EROFS), ("mkdir", errno.EROFS), ("mkdir", errno.EACCES), ("scandir", errno.EIO),
    ],
)  # fmt: skip
def test_full_or_read_only_folder_logs_one_warning(
    call: str, number: int, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fail(monkeypatch, call, number)
    assert_works_in_memory(folder)
    assert logged_warnings(caplog) == [f"cannot use {folder}, so kernels are only in memory: {os.strerror(number)}"]
    assert not folder.exists() or not [name for name in names(folder) if name.endswith(".part")]


def test_entries_of_a_read_only_folder_are_read(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(monkeypatch, "utime", errno.EROFS)
    assert KernelStore(entry.parent).get(KEY) == CODE


def test_partial_writes_are_continued(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:100]))
    KernelStore(folder).put(KEY, CODE)
    assert KernelStore(folder).get(KEY) == CODE


def test_writes_resume_after_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = KernelStore(folder)
    with monkeypatch.context() as full:
        fail(full, "write", errno.ENOSPC)
        store.put(KEY, CODE)
    store.put(OTHER, CODE)
    assert names(folder) == {f"{OTHER}.kernel"}


def test_folder_is_not_used_if_it_cannot_be_checked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("engine.codegen.native.machine_code.FOLDERS_CAN_BE_CHECKED", False)
    assert_works_in_memory(folder)
    assert len(logged_warnings(caplog)) == 1
    assert not folder.exists()
