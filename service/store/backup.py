"""Backup and restore: the commits of a place as one tar file, and back into an empty place.

A backup may be made while a server writes: it has the commits of the moment in which it lists them, since the server
deletes none as long as there is a hold. Every object is checked, in both directions. The last member has the number of
commits, so that a truncated file is noticed. Of a place that servers share, each shard has its own moment.

A backup of one form of place can be restored in the other. From one journal to shards, a commit goes to each shard that
it has items of, under its number; gaps are normal. From shards to one journal, the commits of the shards follow each
other: those of a shard begin where the last one of the shard before ends. Items keep their bytes.
"""

from __future__ import annotations

import os
import secrets
import tarfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Final

from service.core.settings import NO_STATE
from service.store.commit_objects import COMMITS, Damaged, Item, Reading, commit_key, decoded, encoded, require_whole
from service.store.folder import flush_folder
from service.store.object_journal import HOLDS, put_hold
from service.store.objects import SHARDS, Missing, Objects, ShardObjects, folder_of, shard_of, split_key
from service.store.places import (
    FORMAT_KEY,
    SHARED_FORMAT,
    WHOLE_FORMAT,
    claim_objects,
    open_objects,
    place_format,
    place_name,
    write_format,
)

#: the key of an object, and its bytes
CommitObject = tuple[str, bytes]

_END: Final = "END"
_HOLD_SECONDS: Final = 3600.0


def sharded_journals(members: Iterable[CommitObject]) -> Iterator[CommitObject]:
    """Convert the commits of one journal to those of shards."""
    for _, data in members:
        head = decoded(data)
        for shard in sorted({shard_of(item.namespace) for item in head.items}):
            said = [(item, _data(item, data)) for item in head.items if shard_of(item.namespace) == shard]
            parts, _ = encoded(head.sequence, head.token, said)
            yield folder_of(shard) + commit_key(head.sequence), b"".join(parts)


def joined_journals(members: Iterable[CommitObject]) -> Iterator[CommitObject]:
    """Convert the commits of shards, one shard after the other, to those of one journal."""
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


def backup(place: str, file: Path) -> int:
    """Write the commits of a place into a file, replacing an earlier one; return how many there are.

    The file is on disk when this returns, or is not made. Raises RuntimeError with one sentence, and OSError.
    """
    if place == NO_STATE:
        raise RuntimeError("a state in memory ends with its server, and cannot be backed up")
    objects, name = open_objects(place), place_name(place)
    try:
        form = place_format(objects, name)
        if form is None:
            raise RuntimeError(f"{name} is empty: there is nothing to back up")
        with _beside(file) as (part, stream):
            count = _write_objects(objects, name, form, stream)
            stream.flush()
            os.fsync(stream.fileno())
            part.replace(file)
        flush_folder(file.absolute().parent)
        return count
    finally:
        objects.close()


@contextmanager
def _beside(file: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """Make a new file beside another, for its owner alone. Nobody can have made it before, as a link or to read it."""
    part = file.with_name(f"{file.name}.{secrets.token_hex(8)}.part")
    made = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(made, "wb") as stream:
            yield part, stream
    finally:
        part.unlink(missing_ok=True)


def restore(file: Path, place: str, form: bytes = WHOLE_FORMAT) -> int:
    """Fill an empty place with the commits of a backup, in this form; return how many there are.

    The place is marked as ours last: a server refuses one that was not filled to the end. Raises RuntimeError with one
    sentence, and OSError.
    """
    if place == NO_STATE:
        raise RuntimeError("a state in memory begins empty with its server, and cannot be restored")
    objects, has_state = claim_objects(place, form)
    written: list[str] = []
    try:
        if has_state:
            raise RuntimeError(f"{place_name(place)} has state already; restore into an empty place")
        if form == SHARED_FORMAT and objects.exclusive:
            raise RuntimeError(f"{place_name(place)} is no place that servers can share; name one in s3:// or the like")
        stated, members = _opened(file)
        commits: Iterable[CommitObject] = members
        if stated != form:
            commits = sharded_journals(members) if form == SHARED_FORMAT else joined_journals(members)
        for key, data in commits:
            written.append(key)
            objects.put_new(key, [data])
        write_format(objects, form)
        return len(written)
    except BaseException:
        with suppress(OSError):
            objects.delete(written)
        raise
    finally:
        objects.close()


def _write_objects(objects: Objects, name: str, form: bytes, stream: IO[bytes]) -> int:
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        _add(archive, FORMAT_KEY, form)
        if form == WHOLE_FORMAT:
            count = _write_journal(objects, name, "", archive)
        else:
            shards = ((ShardObjects(objects, shard), folder_of(shard)) for shard in range(SHARDS))
            count = sum(_write_journal(shard, f"{name} ({folder})", folder, archive) for shard, folder in shards)
        _add(archive, _END, str(count).encode())
    return count


def _write_journal(objects: Objects, name: str, folder: str, archive: tarfile.TarFile) -> int:
    """Add the commits of one journal, which has this folder; return how many there are."""
    hold = _Hold(objects)
    try:
        count = 0
        for sequence in _listed(objects, name):
            with suppress(Missing):  # dead when it was listed
                data = objects.get(commit_key(sequence))
                _check(f"{name} is damaged: {commit_key(sequence)}", sequence, data)
                _add(archive, folder + commit_key(sequence), data)
                count += 1
            hold.keep()
        hold.require()
        return count
    finally:
        hold.drop()


def _listed(objects: Objects, name: str) -> list[int]:
    """List the commits of one moment, under a hold: those of a second list, up to the last commit of a first one.

    A single list may have a commit and lack the one before it, which was made while the list was read.
    """
    with Reading(objects, name) as reading:
        last = max(reading.sequences(), default=0)
        return [sequence for sequence in reading.sequences() if sequence <= last]


class _Hold:
    """Hold that is renewed before it ends."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._make()

    def keep(self) -> None:
        if time.monotonic() - self._since > _HOLD_SECONDS / 2:
            self.require()
            before = self._key
            self._make()
            self._objects.delete([before])

    def require(self) -> None:
        """Raise RuntimeError if the server has dropped the hold."""
        if self._key not in self._objects.list(HOLDS):
            raise RuntimeError(
                "the server ran out of room during the backup and deleted what it needs; make room first"
            )

    def drop(self) -> None:
        with suppress(OSError):
            self._objects.delete([self._key])

    def _make(self) -> None:
        self._since = time.monotonic()
        self._key = put_hold(self._objects, _HOLD_SECONDS)


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
    archive.addfile(member, BytesIO(data))


def _opened(file: Path) -> tuple[bytes, Iterator[CommitObject]]:
    """Open a backup: return its form, and its commits by their keys, each checked when it is read.

    Reading raises RuntimeError if the file is no backup, or truncated.
    """
    members = _members(file)
    first = next(members, None)
    if first is not None and first[0] == FORMAT_KEY:
        return first[1], members
    return WHOLE_FORMAT, chain(() if first is None else (first,), members)


def _members(file: Path) -> Iterator[CommitObject]:
    """Yield the form, unless it is that of one journal, and the commits, each checked."""
    count, form = 0, WHOLE_FORMAT
    try:
        with tarfile.open(file, "r:") as archive:
            end = file.stat().st_size
            for member in archive:
                if member.issparse() or member.offset_data + member.size > end:
                    raise ValueError(f"{member.name!r} says that it has {member.size} bytes, which are not there")
                content = archive.extractfile(member)
                data = content.read() if content else b""
                if member.name == FORMAT_KEY and data == WHOLE_FORMAT:
                    continue
                if member.name == FORMAT_KEY and data == SHARED_FORMAT and not count:
                    form = data
                    yield FORMAT_KEY, data
                    continue
                if member.name == _END:
                    if int(data) == count:
                        return
                    break
                key = member.name if form == WHOLE_FORMAT else split_key(member.name)[1]
                number = key.removeprefix(COMMITS)
                if not number.isdigit() or key != commit_key(int(number)):
                    raise ValueError(f"it has {member.name!r}")
                _check(f"the backup {file} is damaged: {member.name}", int(number), data)
                count += 1
                yield member.name, data
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise RuntimeError(f"{file} is no backup of gradserve, or is damaged: {error}") from None
    raise RuntimeError(f"the backup {file} is cut off: it does not have all of its commits")


def _check(what: str, sequence: int, data: bytes) -> None:
    """Raise RuntimeError if an object is not as it was written."""
    try:
        head = decoded(data)
        if head.sequence != sequence:
            raise Damaged(f"is commit {head.sequence} under another name")
        for item in head.items:
            require_whole(item, data[item.start : item.start + (item.nbytes or 0)])
    except Damaged as error:
        raise RuntimeError(f"{what} {error}") from None
