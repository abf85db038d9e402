"""Commits moved between the forms of a place: those of one journal to shards, or those of shards to one journal.

A commit goes to each shard that it has items of, under its number; gaps are normal. The commits of shards follow each
other: those of the next begin where the last one of those before ends. No item is written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from service.state.items import Item
from service.state.packing import decoded, encoded
from service.state.reading import commit_key
from service.state.shards import folder_of, shard_of, split_key

#: the key of an object, and its bytes
CommitObject = tuple[str, bytes]


def sharded_journals(members: Iterable[CommitObject]) -> Iterator[CommitObject]:
    """The commits of one journal, as those of shards."""
    for _, data in members:
        head = decoded(data)
        for shard in sorted({shard_of(item.namespace) for item in head.items}):
            said = [(item, _data(item, data)) for item in head.items if shard_of(item.namespace) == shard]
            parts, _ = encoded(head.sequence, head.token, said)
            yield folder_of(shard) + commit_key(head.sequence), b"".join(parts)


def joined_journals(members: Iterable[CommitObject]) -> Iterator[CommitObject]:
    """The commits of shards, one shard after the other, as those of one journal."""
    shard, before, last = -1, 0, 0
    for key, data in members:
        head = decoded(data)
        if split_key(key)[0] != shard:
            shard, before = split_key(key)[0], last
        last = before + head.sequence
        if not head.items:
            continue
        said = [(replace(item, came=before + item.came), _data(item, data)) for item in head.items]
        parts, _ = encoded(last, head.token, said)
        yield commit_key(last), b"".join(parts)


def _data(item: Item, data: bytes) -> memoryview | None:
    return None if item.nbytes is None else memoryview(data)[item.start : item.start + item.nbytes]
