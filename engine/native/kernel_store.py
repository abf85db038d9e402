"""Compiled kernels by key, in memory and in a folder: what one process has compiled, the next one loads."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Final

from engine.native.kernel_folder import FOLDERS_CAN_BE_CHECKED, KernelFolder

#: what a store keeps in memory, of code that is not mapped
MOST_BYTES_IN_MEMORY: Final = 32 << 20

_logger = logging.getLogger("gradserve.kernels")


def kernel_key(text: str, *, system: str, processor: str, compiler: str) -> str:
    """The key of a kernel, 64 hexadecimal digits: the SHA-256 of all that its code depends on.

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
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._held = 0
        self._lock = Lock()
        self._complained = False
        if folder and not FOLDERS_CAN_BE_CHECKED:
            self._complain(folder, "this system cannot tell whose it is")

    def get(self, key: str) -> bytes | None:
        """The code of a key, exactly as it was put; None where there is none. Raises nothing that a disk may do."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        code = self._read_code(key)
        if code is not None:
            self._keep(key, code)
        return code

    def put(self, key: str, code: bytes) -> None:
        """Keep the code of a key. Raises nothing that a disk may do."""
        self._keep(key, code)
        if self._folder is not None:
            try:
                self._folder.write_code(key, code)
            except OSError as error:
                self._complain(self._folder.path, error.strerror or str(error))

    def _read_code(self, key: str) -> bytes | None:
        if self._folder is None:
            return None
        try:
            return self._folder.read_code(key)
        except OSError as error:
            self._complain(self._folder.path, error.strerror or str(error))
            return None

    def _keep(self, key: str, code: bytes) -> None:
        with self._lock:
            self._held += len(code) - len(self._kept.pop(key, b""))
            self._kept[key] = code
            while self._held > self._most_bytes:
                _, oldest = self._kept.popitem(last=False)
                self._held -= len(oldest)

    def _complain(self, folder: Path, reason: str) -> None:
        with self._lock:
            said, self._complained = self._complained, True
        if not said:
            _logger.warning("kernels are kept in memory alone, not in %s: %s", folder, reason)
