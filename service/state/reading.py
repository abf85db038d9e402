"""Commits that are read back from their objects and checked; a sentence tells what is wrong with one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from service.state.items import Item
from service.state.objects import Missing, Objects
from service.state.packing import Contents, Damaged, decoded, head_bytes, require_whole
from service.state.surroundings import SYSTEM, Surroundings

COMMITS: Final = "commits/"
_NUMBER: Final = re.compile(r"[0-9]{20}")
_HEAD: Final = 64 << 10  # bytes that most heads fit into, and all of most commits
_TOGETHER: Final = 4 << 20  # bytes between items that are read with one request
_READS_AT_ONCE: Final = 16  # objects that are read at a time


class Vanished(Exception):
    """Object that was to be read and is not there any more: another server tidies the place."""


def commit_key(sequence: int) -> str:
    """The key of the commit of a number, so that keys are in the order of their numbers."""
    return f"{COMMITS}{sequence:020}"


def read_head(objects: Objects, sequence: int) -> Contents:
    """The head of a commit. Raises Missing, Damaged, OSError."""
    key = commit_key(sequence)
    first = objects.get(key, 0, _HEAD)
    needed = head_bytes(first)
    head = decoded(first if needed <= len(first) else objects.get(key, 0, needed))
    if head.sequence != sequence:
        raise Damaged(f"is commit {head.sequence} under another name")
    return head


def read_items(objects: Objects, sequence: int, items: Sequence[Item]) -> list[bytes]:
    """The bytes of several items of a commit, with few requests. Raises Missing, Damaged, OSError."""
    start = min(item.start for item in items)
    stop = max(item.start + (item.nbytes or 0) for item in items)
    wanted = sum(item.nbytes or 0 for item in items)
    if len(items) == 1 or stop - start > min(2 * wanted, _TOGETHER):
        return [read_item(objects, sequence, item) for item in items]
    block = objects.get(commit_key(sequence), start, stop) if wanted else b""
    found = [block[item.start - start : item.start - start + (item.nbytes or 0)] for item in items]
    for item, data in zip(items, found, strict=True):
        require_whole(item, data)
    return found


def read_item(objects: Objects, sequence: int, item: Item) -> bytes:
    """The bytes of an item of a commit, as they were written. Raises Missing, Damaged, OSError."""
    data = objects.get(commit_key(sequence), item.start, item.start + item.nbytes) if item.nbytes else b""
    require_whole(item, data)
    return data


def _place_of(item: Item) -> tuple[object, ...]:
    return item.key, item.start, item.nbytes


class Reading:
    """The commits of a place, which messages call `place`; several are read at a time, until this is left."""

    def __init__(self, objects: Objects, place: str, around: Surroundings = SYSTEM) -> None:
        self._objects, self._place = objects, place
        self._threads = around.threads(_READS_AT_ONCE, "gradserve-read")

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def sequences(self, after: int = 0) -> list[int]:
        """The numbers of the commits that are there, above one. Raises RuntimeError where something else is among them.

        OSError where it cannot be read.
        """
        listed = map(self._sequence, self._objects.list(COMMITS, commit_key(after) if after else ""))
        return sorted(sequence for sequence in listed if sequence > after)  # a store may not know where to begin

    def heads(self, sequences: Iterable[int]) -> dict[int, Contents]:
        """The heads of commits by their numbers, without those that have been deleted meanwhile.

        Raises RuntimeError where one is damaged or cannot be read.
        """
        wanted = list(sequences)
        return {n: head for n, head in zip(wanted, self._threads.map(self._head, wanted), strict=True) if head}

    def data(self, found: Iterable[tuple[int, Item]]) -> Iterator[tuple[Item, bytes]]:
        """Items with their bytes, each given with the number of its commit.

        Raises RuntimeError as `heads`, and Vanished.
        """
        by_commit = defaultdict[int, list[Item]](list)
        for sequence, item in found:
            by_commit[sequence].append(item)
        for (_, items), data in zip(by_commit.items(), self._threads.map(self._data, by_commit.items()), strict=True):
            yield from zip(items, data, strict=True)

    def _sequence(self, key: str) -> int:
        name = key.removeprefix(COMMITS)
        if not _NUMBER.fullmatch(name):
            raise RuntimeError(f"{self._place} has {key!r}, which is no commit of gradserve's; move it elsewhere")
        return int(name)

    def _head(self, sequence: int) -> Contents | None:
        try:
            return read_head(self._objects, sequence)
        except Missing:
            return None
        except Damaged as error:
            raise self._damage(sequence, error) from None
        except OSError as error:
            raise self._unread(sequence, error) from None

    def _data(self, found: tuple[int, list[Item]]) -> list[bytes]:
        sequence, items = found
        try:
            data = read_items(self._objects, *found)
        except Missing:
            raise Vanished from None
        except Damaged as error:
            self._require_said(sequence, items)
            raise self._damage(sequence, error) from None
        except OSError as error:
            self._require_said(sequence, items)
            raise self._unread(sequence, error) from None
        if not any(data):  # then nothing was read, and it may all be gone
            self._require_said(sequence, items)
        return data

    def _require_said(self, sequence: int, items: Sequence[Item]) -> None:
        """Raise Vanished where a commit does not say these items any more."""
        head = self._head(sequence)
        if head is None or not set(map(_place_of, items)) <= set(map(_place_of, head.items)):
            raise Vanished

    def _unread(self, sequence: int, error: OSError) -> RuntimeError:
        return RuntimeError(f"{self._place} cannot be read: {commit_key(sequence)}: {error.strerror or error}")

    def _damage(self, sequence: int, error: Damaged) -> RuntimeError:
        advice = "restore a backup, or move this one elsewhere to start without what it holds"
        return RuntimeError(f"{self._place} is damaged: {commit_key(sequence)} {error}; {advice}")
