"""Lists of numbers of different lengths, one behind the other in arrays: what is done to all is done at once."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np

Int32s = np.ndarray[Any, np.dtype[np.int32]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]


def ints(numbers: Iterable[int]) -> Int32s:
    """The numbers, of 32 bits each."""
    return np.array(array("i", numbers), np.int32)


def different(some: Int32s) -> Int32s:
    """The different ones of small numbers, in order. `np.unique` would import a tenth of a second of NumPy first."""
    seen = np.zeros(int(some.max(initial=-1)) + 1, np.bool_)
    seen[some] = True
    return np.flatnonzero(seen).astype(np.int32)


def before(lengths: Int32s) -> Int32s:
    """How long all lists in front of each are, and last how long all are together."""
    total = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=total[1:])
    return total


def spans(starts: Int32s, lengths: Int32s) -> Int32s:
    """The numbers from each of `starts` on, as many as `lengths` says: all of the first, then of the second."""
    ends = before(lengths)
    steps = np.repeat(starts - ends[:-1], lengths)
    steps += np.arange(ends[-1], dtype=np.int32)
    return steps


@dataclass(frozen=True, slots=True)
class Ragged:
    """Lists, and where each begins in `flat`; `starts` has one more entry, where the last one ends."""

    flat: Int32s
    starts: Int32s

    @classmethod
    def of(cls, lists: Iterable[Iterable[int]]) -> Self:
        """These lists."""
        held = [tuple(each) for each in lists]
        return cls(ints(chain.from_iterable(held)), before(ints(len(each) for each in held)))

    @property
    def lengths(self) -> Int32s:
        """Of each."""
        return np.diff(self.starts)

    def places(self, which: Int32s) -> Int32s:
        """Where all entries of the lists `which` stand in `flat`, in this order."""
        return spans(self.starts[which], self.lengths[which])
