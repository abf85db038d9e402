"""Compiled kernels by key, in memory and in a folder: what one process has compiled, the next one loads."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

from engine.ir.lru import LRU

# Kernels of a folder are mapped and run, so a folder is used only while it is ours and nobody else can write to it.
# This is checked on the open folder, each time, and every name is looked up in the very folder that was checked. An
# entry states its kind and key, and has the hash of its code: one that was torn, cut or put there by another program is
# as good as absent. Several processes may share a folder. An entry is written beside its place and renamed to it, so
# that readers meet all of it or nothing; it is not forced onto the disk first, since the hash finds what a loss of
# power tears.

#: bytes of the entries of a folder together, about
MOST_BYTES_OF_A_FOLDER: Final = 256 << 20
#: bytes that a store keeps in memory, of code that is not mapped
MOST_BYTES_IN_MEMORY: Final = 32 << 20
#: whether this system can tell whose a folder is, and look names up in one that is open
FOLDERS_CAN_BE_CHECKED: Final = hasattr(os, "geteuid") and os.open in os.supports_dir_fd

_MAGIC: Final = b"gradserve kernel"
_FORMAT: Final = 1
_HEADER: Final = struct.Struct("<16sI32sQ32s")  # magic, format, key, length of the code, its SHA-256
_ENTRY: Final = ".kernel"
_PART: Final = ".part"  # an entry that is being written, or whose writer was killed
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH

_logger = logging.getLogger("gradserve.kernels")


class KernelFolder:
    """The entries of one folder, which is made by the first that is written; the least recently used go first."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES_OF_A_FOLDER) -> None:
        self.path = path
        self._most_bytes = most_bytes
        self._unswept = most_bytes  # bytes written since entries were last counted; at first, nothing is known

    def read_code(self, key: str) -> bytes | None:
        """Read the code that was written for a key; None if there is none that is whole and ours.

        Raises OSError if the folder is there and cannot be used.
        """
        with suppress(FileNotFoundError), self._opened() as folder:
            code = unpacked(key, _content(key + _ENTRY, folder, self._most_bytes))
            if code is not None:
                with suppress(OSError):  # a folder may be there for reading alone
                    os.utime(key + _ENTRY, dir_fd=folder, follow_symlinks=False)
            return code
        return None

    def write_code(self, key: str, code: bytes) -> None:
        """Keep the code of a key, in place of what is there. Raises OSError if that cannot be done."""
        entry = packed(key, code)
        if len(entry) > self._most_bytes:
            return
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._opened() as folder:
            _replace(key + _ENTRY, entry, folder)
            self._unswept += len(entry)
            if self._unswept > self._most_bytes // 16:
                self._sweep(folder)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _require_private(os.fstat(folder))
            yield folder
        finally:
            os.close(folder)

    def _sweep(self, folder: int) -> None:
        kept = 0
        for _, name, nbytes in sorted(_listed(folder), reverse=True):
            kept += nbytes
            if kept > self._most_bytes:
                with suppress(OSError):  # another process has removed it
                    os.unlink(name, dir_fd=folder)
        self._unswept = 0


def packed(key: str, code: bytes) -> bytes:
    """Make the entry of a key, 64 hexadecimal digits: header and code."""
    return _HEADER.pack(_MAGIC, _FORMAT, bytes.fromhex(key), len(code), hashlib.sha256(code).digest()) + code


def unpacked(key: str, entry: bytes) -> bytes | None:
    """Return the code of an entry; None if it is not exactly what was packed for this key."""
    code = entry[_HEADER.size :]
    return code if entry and entry == packed(key, code) else None


def _require_private(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise PermissionError(f"it belongs to user {status.st_uid}, and this is user {os.geteuid()}")
    if status.st_mode & _WRITABLE_BY_OTHERS:
        raise PermissionError(f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})")


def _content(name: str, folder: int, most_bytes: int) -> bytes:
    """Read a file's bytes; none if it is absent, cannot be read, is not ours, or is larger than all may be."""
    try:
        # A link is not followed, and a pipe not waited for.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return b""
    try:
        status = os.fstat(file)
        _require_private(status)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
            return b""
        with os.fdopen(file, "rb", closefd=False) as stream:
            return stream.read()
    except OSError:
        return b""
    finally:
        os.close(file)


def _replace(name: str, entry: bytes, folder: int) -> None:
    part = secrets.token_hex(8) + _PART
    try:
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            rest = memoryview(entry)
            while rest:
                rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)
        with suppress(FileNotFoundError):  # another process has counted it, and found it to be too much
            os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(part, dir_fd=folder)
        raise


def _listed(folder: int) -> Iterator[tuple[int, str, int]]:
    """Yield the time when each file of ours was last used, its name and its bytes."""
    with os.scandir(folder) as found:
        for file in found:
            if file.name.endswith((_ENTRY, _PART)):
                with suppress(FileNotFoundError):  # another process has removed it
                    status = file.stat(follow_symlinks=False)
                    yield status.st_mtime_ns, file.name, status.st_size


def kernel_key(text: str, *, system: str, processor: str, compiler: str) -> str:
    """Make the key of a kernel, 64 hexadecimal digits: the SHA-256 of all that its code depends on.

    `text` is what the compiler reads; `system`, `processor` and `compiler` are those of `machine_code.target`.
    """
    return hashlib.sha256(repr((text, system, processor, compiler)).encode()).hexdigest()


class KernelStore:
    """Object code by key: the most recently used in memory, all of it in `folder`, if one is given and can be used.

    A folder that cannot be used, or is full, costs one line of the log; memory goes on by itself. May be shared by
    threads, and the folder by processes.
    """

    def __init__(self, folder: Path | None = None, most_bytes: int = MOST_BYTES_IN_MEMORY) -> None:
        self._folder = KernelFolder(folder) if folder and FOLDERS_CAN_BE_CHECKED else None
        self._kept: LRU[str, bytes] = LRU(most_bytes, len)
        self._lock = Lock()
        self._complained = False
        if folder and not FOLDERS_CAN_BE_CHECKED:
            self._complain(folder, "this system cannot tell whose it is")

    def get(self, key: str) -> bytes | None:
        """Return the code of a key, exactly as it was put, or None. Raises no error of the disk."""
        code = self._kept.hit(key)
        if code is None:
            code = self._read_code(key)
            if code is not None:
                self._kept.put(key, code)
        return code

    def put(self, key: str, code: bytes) -> None:
        """Keep the code of a key. Raises no error of the disk."""
        self._kept.put(key, code)
        if self._folder is not None:
            try:
                self._folder.write_code(key, code)
            except OSError as error:
                self._complain(self._folder.path, error.strerror or str(error))

    def _read_code(self, key: str) -> bytes | None:
        if self._folder is not None:
            try:
                return self._folder.read_code(key)
            except OSError as error:
                self._complain(self._folder.path, error.strerror or str(error))
        return None

    def _complain(self, folder: Path, reason: str) -> None:
        with self._lock:
            said, self._complained = self._complained, True
        if not said:
            _logger.warning("kernels are kept in memory alone, not in %s: %s", folder, reason)
