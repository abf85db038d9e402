"""Memory that is executable and not writable: written first, then turned over, never both at once."""

from __future__ import annotations

import ctypes
import mmap
from functools import cache
from typing import Any, Final

from engine.native.kernel_errors import KernelUnavailable

_FAILED: Final = ctypes.c_void_p(-1).value


class ExecutableMemory:
    """Machine code in memory of its own, given back when nothing refers to it. Raises KernelUnavailable if refused."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        self.address: int = 0
        library = _library()
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        address = library.mmap(None, self.nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if address in (None, _FAILED):
            raise KernelUnavailable(f"there is no memory for a kernel of {self.nbytes} bytes")
        self.address = address

    def write_image(self, image: bytes) -> None:
        """Put `image` there, and make it executable: once."""
        ctypes.memmove(self.address, image, len(image))
        if _library().mprotect(self.address, self.nbytes, mmap.PROT_READ | mmap.PROT_EXEC):
            raise KernelUnavailable("the system refuses executable memory, so kernels are not compiled")

    def __del__(self) -> None:
        if self.address:
            _library().munmap(self.address, self.nbytes)


@cache
def _library() -> Any:
    """The system's mmap, mprotect and munmap, which Python's own mmap cannot turn over."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library
