"""Tensors that stay with the server: a version of one, as the front keeps it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine import HostArray
from service.compute.job import Room
from service.wire.version import Version


@dataclass(frozen=True, eq=False, slots=True)
class Resident:
    """A version of a tensor. The view of `room` holds its elements, row-major and little-endian, and nothing else.

    They are written once, before the pool is told. A view that was taken of them stays what it is for as long as
    anybody holds it, also when the room has been given back.
    """

    dtype: str
    shape: tuple[int, ...]
    etag: str
    room: Room

    @property
    def version(self) -> Version:
        """What a job in this process reads."""
        return Version(self.etag, array_of(self.room.view, self.dtype, self.shape))


def array_of(data: memoryview | bytes, dtype: str, shape: tuple[int, ...]) -> HostArray:
    """The read-only array that row-major, little-endian bytes are; their memory goes with it."""
    little_endian = np.dtype(dtype).newbyteorder("<")
    if not len(data):
        return np.empty(shape, dtype)
    flat = np.frombuffer(data, little_endian).astype(dtype, copy=False)
    array = flat.reshape(shape)
    array.flags.writeable = False
    return array
