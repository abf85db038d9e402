"""Backup and restore: write the commits of a place to one tar file, and read them into an empty place.

A backup may be made while a server writes. It has the commits that exist when it lists them; a hold keeps the server
from deleting any. Every object is checked, both when it is written to the file and when it is read. The last member is
the number of commits, so that a truncated file is noticed. If servers share the place, each shard is listed at its own
moment.

A backup of a shared place has the number of its shards; one by an earlier version has none, and is of 16 shards.

A backup of a single journal can be restored into shards, and the reverse. Into shards, a commit goes to each shard of
which it has items, under its number; gaps are normal. Into a single journal, the shards follow each other, each with
its numbers raised by the last number before. Shards go into shards, of the same number or another, by way of a single
journal: so nothing names the owners of the place that was backed up. Items keep their bytes.
"""

from __future__ import annotations

import os
import secrets
import tarfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO, Final

from service.core.settings import MAX_SHARDS, NO_STATE
from service.store.commit_objects import (
    COMMITS,
    Damaged,
    Item,
    Reading,
    commit_key,
    decode_head,
    encode_commit,
    require_whole,
)
from service.store.folder import flush_folder
from service.store.object_journal import HOLDS, put_hold
from service.store.objects import (
    SHARD_FOLDERS,
    Missing,
    Objects,
    ShardObjects,
    folder_of,
    shard_of,
    split_key,
)
from service.store.places import (
    FORMAT_KEY,
    SHARDS_KEY,
    SHARED_FORMAT,
    UNRECORDED_SHARDS,
    WHOLE_FORMAT,
    claim_objects,
    open_objects,
    parse_shards,
    place_format,
    place_name,
    recorded_shards,
    shards_record,
    write_format,
)

#: key of an object, and its bytes
CommitObject = tuple[str, bytes]

_END: Final = "END"
_HOLD_SECONDS: Final = 3600.0


def sharded_journals(members: Iterable[CommitObject], shards: int) -> Iterator[CommitObject]:
    """Convert the commits of a single journal to commits of so many shards."""
    for _, data in members:
        head = decode_head(data)
        by_shard = defaultdict[int, list[tuple[Item, memoryview | None]]](list)
        for item in head.items:
            by_shard[shard_of(item.namespace, shards)].append((item, _data(item, data)))
        for shard, pairs in sorted(by_shard.items()):
            parts, _ = encode_commit(head.sequence, head.token, pairs)
            yield folder_of(shard) + commit_key(head.sequence), b"".join(parts)


def joined_journals(members: Iterable[CommitObject]) -> Iterator[CommitObject]:
    """Convert the commits of shards, one shard after the other, to commits of a single journal."""
    shard, offset, last = -1, 0, 0
    for key, data in members:
        head = decode_head(data)
        if (shard_of_key := split_key(key, MAX_SHARDS)[0]) != shard:
            shard, offset = shard_of_key, last
        last = offset + head.sequence
        if not head.items:
            continue
        pairs = [(replace(item, first_commit=offset + item.first_commit), _data(item, data)) for item in head.items]
        parts, _ = encode_commit(last, head.token, pairs)
        yield commit_key(last), b"".join(parts)


def _data(item: Item, data: bytes) -> memoryview | None:
    return None if item.nbytes is None else memoryview(data)[item.start : item.start + item.nbytes]


def backup(place: str, file: Path) -> int:
    """Write the commits of a place to a file, replacing an earlier one; return the number of commits.

    When this returns, the file is on disk; if it fails, nothing is left. Raises RuntimeError with one sentence, and
    OSError.
    """
    if place == NO_STATE:
        raise RuntimeError("state in memory cannot be backed up")
    objects, name = open_objects(place), place_name(place)
    try:
        form = place_format(objects, name)
        if form is None:
            raise RuntimeError(f"{name} is empty: there is nothing to back up")
        with _temporary_file(file) as (part, stream):
            count = _write_objects(objects, name, form, stream)
            stream.flush()
            os.fsync(stream.fileno())
            part.replace(file)
        flush_folder(file.absolute().parent)
        return count
    finally:
        objects.close()


@contextmanager
def _temporary_file(file: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """Create a temporary file next to another, for its owner only, under an unpredictable name."""
    part = file.with_name(f"{file.name}.{secrets.token_hex(8)}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield part, stream
    finally:
        part.unlink(missing_ok=True)


def restore(file: Path, place: str, form: bytes = WHOLE_FORMAT, shards: int = UNRECORDED_SHARDS) -> int:
    """Fill an empty place with the commits of a backup, in this form; return the number of commits.

    A shared place gets so many `shards`, whatever the backup has. The mark that makes the place valid is written last,
    so that no server accepts a place that was filled in part. Raises RuntimeError with one sentence, and OSError.
    """
    if place == NO_STATE:
        raise RuntimeError("a backup cannot be restored to memory")
    objects, has_state = claim_objects(place, form)
    written: list[str] = []
    try:
        if has_state:
            raise RuntimeError(f"{place_name(place)} is not empty; restore to an empty place")
        if form == SHARED_FORMAT and objects.exclusive:
            raise RuntimeError(f"servers cannot share {place_name(place)}; use an s3://, gs:// or az:// URL")
        backup_form, members = _open_backup(file)
        commits: Iterable[CommitObject] = members if backup_form == WHOLE_FORMAT else joined_journals(members)
        if form == SHARED_FORMAT:
            commits = sharded_journals(commits, shards)
        for key, data in commits:
            written.append(key)
            objects.put_new(key, [data])
        count = len(written)
        if form == SHARED_FORMAT:
            written.append(SHARDS_KEY)
            objects.put_new(SHARDS_KEY, [shards_record(shards)])
        write_format(objects, form)
    except BaseException:
        with suppress(OSError):
            objects.delete(written)
        raise
    else:
        return count
    finally:
        objects.close()


def _write_objects(objects: Objects, name: str, form: bytes, stream: IO[bytes]) -> int:
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        _add(archive, FORMAT_KEY, form)
        if form == WHOLE_FORMAT:
            count = _write_journal(objects, name, "", archive)
        else:
            shards = recorded_shards(objects, name) or UNRECORDED_SHARDS
            _add(archive, SHARDS_KEY, shards_record(shards))
            folders = [(ShardObjects(objects, shard), folder_of(shard)) for shard in _used_shards(objects, shards)]
            count = sum(_write_journal(shard, f"{name} ({folder})", folder, archive) for shard, folder in folders)
        _add(archive, _END, str(count).encode())
    return count


def _used_shards(objects: Objects, shards: int) -> list[int]:
    """List the shards that have any object: a shard that has a commit keeps its last one."""
    folders = {key[: key.find("/", len(SHARD_FOLDERS)) + 1] for key in objects.list(SHARD_FOLDERS)}
    return [shard for shard in range(shards) if folder_of(shard) in folders]


def _write_journal(objects: Objects, name: str, folder: str, archive: tarfile.TarFile) -> int:
    """Add the commits of one journal, under the prefix `folder`; return their number."""
    hold = _Hold(objects)
    try:
        count = 0
        for sequence in _listed(objects, name):
            with suppress(Missing):  # it was dead when it was listed
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
    """List the commits of one moment, under a hold: those in a second list, up to the last commit of a first one.

    A single list is not enough: it may have a commit but not the one before it, written while the list was read.
    """
    with Reading(objects, name) as reading:
        last = max(reading.sequences(), default=0)
        return [sequence for sequence in reading.sequences() if sequence <= last]


class _Hold:
    """Hold that is renewed before it expires."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._make()

    def keep(self) -> None:
        if time.monotonic() - self._since > _HOLD_SECONDS / 2:
            self.require()
            previous = self._key
            self._make()
            self._objects.delete([previous])

    def require(self) -> None:
        """Raise RuntimeError if the server has dropped the hold."""
        if self._key not in self._objects.list(HOLDS):
            raise RuntimeError(
                "the server ran out of space during the backup and deleted data that the backup needs; free space first"
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


def _open_backup(file: Path) -> tuple[bytes, Iterator[CommitObject]]:
    """Open a backup: return its form, and its commits by key, each of which is checked when it is read.

    Reading raises RuntimeError if the file is no backup, or truncated.
    """
    members = _members(file)
    first = next(members, None)
    if first is not None and first[0] == FORMAT_KEY:
        return first[1], members
    return WHOLE_FORMAT, chain(() if first is None else (first,), members)


def _members(file: Path) -> Iterator[CommitObject]:
    """Yield the form, unless it is that of a single journal, and the commits, each checked."""
    count, form, shards = 0, WHOLE_FORMAT, UNRECORDED_SHARDS
    try:
        with tarfile.open(file, "r:") as archive:
            end = file.stat().st_size
            for member in archive:
                if member.issparse() or member.offset_data + member.size > end:
                    raise ValueError(f"{member.name!r} should have {member.size} bytes, but is shorter")
                content = archive.extractfile(member)
                data = content.read() if content else b""
                if member.name == FORMAT_KEY and data == WHOLE_FORMAT:
                    continue
                if member.name == FORMAT_KEY and data == SHARED_FORMAT and not count:
                    form = data
                    yield FORMAT_KEY, data
                    continue
                if member.name == SHARDS_KEY and form == SHARED_FORMAT and not count:
                    shards = _shards_of(data)
                    continue
                if member.name == _END:
                    if int(data) == count:
                        return
                    break
                number = _number(member.name, None if form == WHOLE_FORMAT else shards)
                _check(f"the backup {file} is damaged: {member.name}", number, data)
                count += 1
                yield member.name, data
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise RuntimeError(f"{file} is not a backup of gradserve, or is damaged: {error}") from None
    raise RuntimeError(f"the backup {file} is incomplete: some of its commits are missing")


def _shards_of(data: bytes) -> int:
    try:
        return parse_shards(data)
    except ValueError as error:
        raise ValueError(f"{SHARDS_KEY} {error}") from None


def _number(name: str, shards: int | None) -> int:
    """Return the number of the commit in a member, in one of so many shards if there are any. Raises ValueError."""
    key = name if shards is None else split_key(name, shards)[1]
    number = key.removeprefix(COMMITS)
    if not number.isdigit() or key != commit_key(int(number)):
        raise ValueError(f"unexpected member {name!r}")
    return int(number)


def _check(what: str, sequence: int, data: bytes) -> None:
    """Raise RuntimeError if an object is not as it was written."""
    try:
        head = decode_head(data)
        if head.sequence != sequence:
            raise Damaged(f"contains commit {head.sequence}")
        for item in head.items:
            require_whole(item, data[item.start : item.start + (item.nbytes or 0)])
    except Damaged as error:
        raise RuntimeError(f"{what} {error}") from None
