"""Arrays next to memory that cannot be accessed: reading or writing one byte outside the array kills the process.

The system protects whole pages, so only one end of an array is checked at a time: an array ends where a guarded page
begins, or begins where one ends.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

_PAGE: Final = mmap.PAGESIZE
_NO_ACCESS: Final = 0  # PROT_NONE
_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def guarded(source: Array | int, at_end: bool = True) -> Array:
    """Return memory of its own between two guarded pages: a copy of an array, or this many zero bytes.

    With `at_end` the last byte is the last before a guarded page, and the start is aligned to the dtype's size at most;
    else the first byte is the first behind a guarded page. The array is C-contiguous and keeps its shape and dtype. The
    memory lives as long as arrays that use it.
    """
    array = np.zeros(source, np.uint8) if isinstance(source, int) else source
    capacity = -(-array.nbytes // _PAGE) * _PAGE
    memory = mmap.mmap(-1, capacity + 2 * _PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (start, start + _PAGE + capacity):
        if _libc.mprotect(page, _PAGE, _NO_ACCESS):
            raise OSError(ctypes.get_errno(), "no page could be guarded")
    offset = _PAGE + (capacity - array.nbytes if at_end else 0)
    result: Array = np.ndarray(array.shape, array.dtype, buffer=memory, offset=offset)
    result[...] = array
    return result
