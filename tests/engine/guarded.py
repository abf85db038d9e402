"""Arrays beside memory that cannot be read or written: whoever leaves such an array by one byte dies by a signal.

The system guards whole pages, so one end of an array is watched at a time: an array ends where a guarded page begins,
or begins where one ends.
"""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

_PAGE: Final = mmap.PAGESIZE
_NOTHING: Final = 0  # PROT_NONE
_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def guarded(what: Array | int, at_end: bool = True) -> Array:
    """Memory of its own between two guarded pages: a copy of an array, or so many bytes, which are zero.

    With `at_end` its last byte is the last before a guarded page, and it begins at no more than a multiple of its
    dtype's size; else its first byte is the first behind one. An array is laid out as NumPy's C order has it, and keeps
    its shape and dtype. The memory lives as long as arrays of it do.
    """
    array = np.zeros(what, np.uint8) if isinstance(what, int) else what
    between = -(-array.nbytes // _PAGE) * _PAGE
    memory = mmap.mmap(-1, between + 2 * _PAGE)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (begin, begin + _PAGE + between):
        if _libc.mprotect(page, _PAGE, _NOTHING):
            raise OSError(ctypes.get_errno(), "no page could be guarded")
    offset = _PAGE + (between - array.nbytes if at_end else 0)
    found: Array = np.ndarray(array.shape, array.dtype, buffer=memory, offset=offset)
    found[...] = array
    return found
