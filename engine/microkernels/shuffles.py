"""Vectors whose lanes are chosen from others'."""

from __future__ import annotations

from collections.abc import Sequence

from engine.microkernels.routine import Routine


def parted(to: Routine, vectors: Sequence[str]) -> list[str]:
    """Of the lanes of n vectors, all in a row, every n-th one: from the first on, from the second, … the n-th."""
    return [_every(to, vectors, start) for start in range(len(vectors))]


def _every(to: Routine, vectors: Sequence[str], start: int) -> str:
    count = to.lanes
    wanted = [start + lane * len(vectors) for lane in range(count)]
    found, so_far = vectors[0], wanted
    for past, vector in zip(range(count, len(vectors) * count, count), vectors[1:], strict=True):
        # the lanes of this vector, behind those that were found and are where they belong
        here = [count + min(lane - past, count - 1) for lane in wanted]
        lanes = [old if lane < past else new for lane, old, new in zip(wanted, so_far, here, strict=True)]
        found = to.shuffled(found, vector, lanes)
        so_far = list(range(count))
    return found


def arranged(to: Routine, vector: str, lanes: Sequence[int | None]) -> str:
    """The lanes of these numbers, and zeros for None."""
    if list(lanes) == list(range(to.lanes)):
        return vector
    return to.shuffled(vector, to.zero, [to.lanes if lane is None else lane for lane in lanes])
