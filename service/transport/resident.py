from __future__ import annotations

import numpy as np

from engine import HostArray


def array_of(data: memoryview | bytes, dtype: str, shape: tuple[int, ...]) -> HostArray:
    """The read-only array that row-major, little-endian bytes are; their memory goes with it."""
    little_endian = np.dtype(dtype).newbyteorder("<")
    if not len(data):
        return np.empty(shape, dtype)
    flat = np.frombuffer(data, little_endian).astype(dtype, copy=False)
    array = flat.reshape(shape)
    array.flags.writeable = False
    return array
