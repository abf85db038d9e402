"""Objects as files of a local folder, durable before anyone is told.

A file is written under a temporary name and flushed, then linked to its name, and then the folder of the name is
flushed: only then does `put_new` return. A link replaces nothing, so one of two racing writers wins. A file under its
own name is complete. What a crash left unfinished is in `unfinished/`, and is removed when the folder is opened next.

One server has a folder: it holds a lock on the file LOCK, which the system releases when the process ends in any way.
All names are looked up in open folder descriptors, so it does no harm if the path is moved or replaced.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

from service.core.machine import WRITABLE_BY_OTHERS
from service.store.objects import Data, Exists, Missing

try:
    import fcntl
except ImportError:  # a system without such locks, as Windows
    fcntl = None  # type: ignore[assignment]

_LOCK: Final = "LOCK"
_UNFINISHED: Final = "unfinished"
#: names that are no objects: our own, and the folder in the root of a new file system
_NO_OBJECTS: Final = (_LOCK, _UNFINISHED, "lost+found")
#: most parts in one write (IOV_MAX is 1024 on Linux and macOS)
_MOST_AT_ONCE: Final = 512
_NO_LINKS: Final = (errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, getattr(errno, "ENOTSUP", errno.EOPNOTSUPP))
_OPEN_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_OPEN_FILE: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_OPEN_LOCK: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
_OPEN_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class Folder:
    """Objects in one folder, which is created if it is missing and `make` is set. Raises OSError if that fails.

    Keys have at most one slash: `commits/7` is the file 7 in the folder commits.
    """

    def __init__(self, path: Path, *, make: bool = True) -> None:
        self.path = path
        self.exclusive = False
        if make:
            _make(path)
        self._folders = {"": os.open(path, _OPEN_FOLDER)}
        self._opening = Lock()
        self._lock: int | None = None

    def lock(self) -> None:
        """Lock the folder. Raises BlockingIOError if another process has it, and OSError."""
        self._lock = os.open(_LOCK, _OPEN_LOCK, 0o600, dir_fd=self._folders[""])
        if fcntl is not None:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.exclusive = True

    def clean(self, *names: str) -> None:
        """Remove unfinished files, and flush the names in these folders; the lock must be held.

        A process that was killed may have named a file without flushing the name, on which this process relies from
        now on.
        """
        unfinished = self._folder(_UNFINISHED)
        for part in _names(unfinished):
            os.unlink(part, dir_fd=unfinished)
        for name in names:
            _flush(self._folder(name))

    def require_writable(self, *names: str) -> None:
        """Raise OSError if files cannot be created in these folders."""
        for name in (_UNFINISHED, *names):
            folder = self._folder(name)
            if os.fstatvfs(folder).f_flag & os.ST_RDONLY:
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    def require_private(self, *names: str) -> None:
        """Raise OSError if others may write to the folder or to these: its files could be theirs."""
        for name in ("", *names):
            status = os.fstat(self._folder(name))
            if status.st_mode & WRITABLE_BY_OTHERS or status.st_uid not in (0, os.geteuid()):
                problem = f"other users can write to {self.path / name}; run chmod 700"
                raise OSError(errno.EPERM, problem)

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        """Implement `Objects.get`."""
        with self._opened(key) as file:
            end = os.fstat(file).st_size
            return _read_between(file, start, end if stop is None else min(stop, end))

    def put(self, key: str, data: Sequence[Data]) -> None:
        """Implement `Objects.put`."""
        folder, name = self._place(key)
        with self._written(data) as (unfinished, part):
            os.replace(part, name, src_dir_fd=unfinished, dst_dir_fd=folder)
        _flush(folder)

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        """Implement `Objects.put_new`."""
        folder, name = self._place(key)
        with self._written(data) as (unfinished, part):
            try:
                _name(part, name, unfinished, folder)
            except FileExistsError:
                raise Exists(key) from None
        _flush(folder)

    def delete(self, keys: Sequence[str]) -> None:
        """Implement `Objects.delete`."""
        touched = set()
        for key in keys:
            folder, name = self._place(key)
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
                touched.add(folder)
        for folder in touched:
            _flush(folder)

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        """Implement `Objects.list`."""
        keys: Iterable[str] = ()
        if not prefix:
            keys = self._everything()
        else:
            with suppress(FileNotFoundError):
                keys = [prefix + name for name in _names(self._folder(prefix.rstrip("/"), make=False))]
        return (key for key in keys if key > after)

    def close(self) -> None:
        """Implement `Objects.close`: the lock is released."""
        opened, self._folders = self._folders, {}
        for file in (*opened.values(), self._lock):
            if file is not None:
                os.close(file)
        self._lock = None

    def _everything(self) -> Iterator[str]:
        """Yield all files, also in nested folders: they may be another program's."""
        for path in self.path.rglob("*"):
            inside = path.relative_to(self.path)
            if inside.parts[0] not in _NO_OBJECTS and not path.is_dir():
                yield inside.as_posix()

    def _place(self, key: str) -> tuple[int, str]:
        folder, _, name = key.rpartition("/")
        return self._folder(folder), name

    def _folder(self, name: str, *, make: bool = True) -> int:
        """Open a folder, and keep it open; create it if it is missing and `make` is set."""
        with self._opening:
            if name not in self._folders:
                root = self._folders[""]
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, mode=0o700, dir_fd=root)
                        os.chmod(name, 0o700, dir_fd=root)  # the umask may have removed some of the mode
                        _flush(root)
                self._folders[name] = os.open(name, _OPEN_FOLDER, dir_fd=root)
            return self._folders[name]

    @contextmanager
    def _opened(self, key: str) -> Iterator[int]:
        folder, _, name = key.rpartition("/")
        try:
            file = os.open(name, _OPEN_FILE, dir_fd=self._folder(folder, make=False))
        except FileNotFoundError:
            raise Missing(key) from None
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            yield file
        finally:
            os.close(file)

    @contextmanager
    def _written(self, data: Sequence[Data]) -> Iterator[tuple[int, str]]:
        """Write a durable file under a temporary name, which is removed in the end."""
        folder, part = self._folder(_UNFINISHED), secrets.token_hex(8)
        file = os.open(part, _OPEN_NEW, 0o600, dir_fd=folder)
        try:
            try:
                _write_parts(file, data)
                _flush(file)
            finally:
                os.close(file)
            yield folder, part
        finally:
            with suppress(OSError):  # it has been renamed, or is removed at the next start
                os.unlink(part, dir_fd=folder)


def _make(path: Path) -> None:
    """Create a folder with its parents, durably."""
    if path.is_dir():
        return
    _make(path.parent)
    try:
        path.mkdir(mode=0o700)
        path.chmod(0o700)  # the umask may have removed some of the mode
    except FileExistsError:
        if not path.is_dir():
            raise
    flush_folder(path.parent)


def flush_folder(path: Path) -> None:
    """Flush the names in a folder to disk."""
    folder = os.open(path, _OPEN_FOLDER)
    try:
        _flush(folder)
    finally:
        os.close(folder)


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [file.name for file in entries]


def _name(part: str, name: str, unfinished: int, folder: int) -> None:
    """Give a file its name without replacing another file."""
    try:
        os.link(part, name, src_dir_fd=unfinished, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links: nobody else creates the name meanwhile, since this process has the lock.
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            raise FileExistsError(name) from None
        os.rename(part, name, src_dir_fd=unfinished, dst_dir_fd=folder)


def _flush(file: int) -> None:
    """Flush the bytes of a file, or the names in a folder, to disk."""
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync leaves the bytes in the disk's own cache
    if full is not None:
        with suppress(OSError):  # not every file system supports it
            fcntl.fcntl(file, full)
            return
    os.fsync(file)


def _write_parts(file: int, data: Sequence[Data]) -> None:
    rest = [memoryview(part).cast("B") for part in data if len(part)]
    while rest:
        written = os.writev(file, rest[:_MOST_AT_ONCE])
        while rest and written >= len(rest[0]):
            written -= len(rest.pop(0))
        if written:
            rest[0] = rest[0][written:]


def _read_between(file: int, start: int, stop: int) -> bytes:
    """Read the bytes from `start` to `stop`, or fewer if the file ends."""
    parts = []
    while start < stop and (part := os.pread(file, min(stop - start, 1 << 30), start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)
