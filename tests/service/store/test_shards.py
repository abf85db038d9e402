"""Number of shards of a shared state: the mapping of namespaces, folders, and the record that all servers agree on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import pytest

from service.core.settings import Settings
from service.store.objects import Data, Exists, Missing, ShardObjects, folder_of, shard_of, split_key
from service.store.places import SHARED_FORMAT, prepare_shared, recorded_shards, write_format
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import open_shared

NAME = "the state at s3://bucket/folder"
NAMES = ("", "alice", "bob", "ns0")


@pytest.mark.parametrize(
    ("shards", "expected"),
    [
        (1, [0, 0, 0, 0]),
        (16, [4, 13, 4, 11]),
        (256, [228, 77, 116, 75]),
        (257, [129, 244, 26, 100]),
        (4096, [692, 2697, 1170, 1639]),
    ],
)
def test_mapping_is_fixed(shards: int, expected: list[int]) -> None:
    """Another hash would lose stored data."""
    assert [shard_of(name, shards) for name in NAMES] == expected


@pytest.mark.parametrize("shards", [1, 16, 100, 256, 257, 1000, 4096])
def test_namespaces_spread_over_all_shards(shards: int) -> None:
    counts = [0] * shards
    for number in range(20 * shards):
        counts[shard_of(f"namespace {number}", shards)] += 1
    assert min(counts) > 0
    assert max(counts) < 60


def test_each_shard_has_one_folder() -> None:
    folders = [folder_of(shard) for shard in range(4096)]
    assert [folders[shard] for shard in (0, 7, 99, 100, 4095)] == [
        "shards/00/", "shards/07/", "shards/99/", "shards/100/", "shards/4095/",
    ]  # fmt: skip
    assert len(set(folders)) == 4096
    assert [split_key(folder + "commits/1", 4096) for folder in folders] == [(n, "commits/1") for n in range(4096)]


@pytest.mark.parametrize("number", ["7", "007", "0100", "16", "100", "0016", "-1", "٠٧", "1_0"])
def test_other_names_of_folders_are_refused(number: str) -> None:
    with pytest.raises(ValueError, match="unexpected member"):
        split_key(f"shards/{number}/commits/1", 16)


@pytest.mark.parametrize("shards", [1, 16, 4096])
def test_first_server_records_the_number(shards: int) -> None:
    objects = MemoryObjects()
    prepare_shared(objects, NAME, shards)
    assert objects.get("FORMAT") == SHARED_FORMAT
    assert objects.get("SHARDS") == b'{"format":"gradserve shards 1","shards":%d}\n' % shards
    prepare_shared(objects, NAME, shards)
    assert recorded_shards(objects, NAME) == shards


def test_another_number_is_refused_with_one_sentence() -> None:
    objects = MemoryObjects()
    prepare_shared(objects, NAME, 64)
    with pytest.raises(RuntimeError) as refused:
        prepare_shared(objects, NAME, 16)
    assert str(refused.value) == (
        f"{NAME} has 64 shards, but --shards is 16; set --shards 64, or convert the state with gradserve backup and "
        "gradserve restore, into an empty place"
    )
    assert recorded_shards(objects, NAME) == 64


def test_state_without_a_record_has_16_shards() -> None:
    objects = unrecorded()
    ShardObjects(objects, 3).put_new("commits/1", [b""])
    with pytest.raises(RuntimeError, match="has 16 shards, but --shards is 64"):
        prepare_shared(objects, NAME, 64)
    assert recorded_shards(objects, NAME) is None
    prepare_shared(objects, NAME, 16)
    assert recorded_shards(objects, NAME) == 16


def test_unused_state_without_a_record_gets_any_number() -> None:
    objects = unrecorded()
    prepare_shared(objects, NAME, 64)
    assert recorded_shards(objects, NAME) == 64


def test_one_of_two_numbers_wins() -> None:
    """Servers that start first at the same time see no record, and one of them writes it."""
    for turn in range(20):
        objects, start = MemoryObjects(), Barrier(8)

        def begin(number: int, objects: MemoryObjects = objects, start: Barrier = start) -> bool:
            start.wait()
            try:
                prepare_shared(objects, NAME, 2**number)
            except RuntimeError:
                return False
            return True

        with ThreadPoolExecutor(8) as threads:
            accepted = list(threads.map(begin, range(8)))
        assert accepted.count(True) == 1, turn
        assert recorded_shards(objects, NAME) == 2 ** accepted.index(True)


def test_later_of_two_first_servers_is_refused() -> None:
    """The other server writes its number between this one's look and its write."""

    class Overtaken(MemoryObjects):
        def put_new(self, key: str, data: Sequence[Data]) -> None:
            if key == "SHARDS" and key not in self._kept:
                super().put_new(key, [b'{"format":"gradserve shards 1","shards":32}\n'])
            super().put_new(key, data)

    with pytest.raises(RuntimeError, match=f"^{NAME} has 32 shards, but --shards is 64"):
        prepare_shared(Overtaken(), NAME, 64)


def test_number_that_is_recorded_during_the_check_counts() -> None:
    """The other server records its number, and writes, between this one's check of the record and of the shards."""

    class Overtaken(MemoryObjects):
        def list(self, prefix: str, after: str = "") -> Iterable[str]:
            if prefix == "shards/":
                self.put("SHARDS", [b'{"format":"gradserve shards 1","shards":64}\n'])
                self.put("shards/63/commits/1", [b""])
            return super().list(prefix, after)

    prepare_shared(Overtaken(), NAME, 64)
    with pytest.raises(RuntimeError, match="has 64 shards, but --shards is 32"):
        prepare_shared(Overtaken(), NAME, 32)


def test_unreachable_store_is_an_oserror_and_may_be_tried_again() -> None:
    """A server that cannot reach the store at its start may wait for it. A write in doubt is found by the next try."""

    class Away(MemoryObjects):
        def __init__(self) -> None:
            super().__init__()
            self.failures = 0

        def _fail(self, *, late: bool = False) -> None:
            self.failures += 1
            raise OSError(5, "the store is away" + " and has the object" * late)

        def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
            return super().get(key, start, stop) if self.failures else self._fail() or b""

        def put_new(self, key: str, data: Sequence[Data]) -> None:
            super().put_new(key, data)
            if key == "SHARDS":
                self._fail(late=True)

    objects = Away()
    for failures in (1, 2):
        with pytest.raises(OSError, match="the store is away"):
            prepare_shared(objects, NAME, 64)
        assert objects.failures == failures
    prepare_shared(objects, NAME, 64)


def test_conflict_without_an_object_is_an_oserror() -> None:
    """S3 may report a conflict to all of several racing writers."""

    class Conflicting(MemoryObjects):
        def put_new(self, key: str, data: Sequence[Data]) -> None:
            if key == "SHARDS":
                raise Exists(key)
            super().put_new(key, data)

    with pytest.raises(OSError, match="SHARDS"):
        prepare_shared(Conflicting(), NAME, 64)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is damaged, or was not written by gradserve"),
        (b"16\n", "is damaged, or was not written by gradserve"),
        (b'{"format":"gradserve shards 1"}', "is damaged, or was not written by gradserve"),
        (b'{"format":"gradserve shards 2","shards":64}', "has the format 'gradserve shards 2', but this version"),
        (b'{"format":"gradserve shards 1","shards":4097}', "names 4097 shards, but a state has 1 to 4096"),
        (b'{"format":"gradserve shards 1","shards":true}', "names True shards, but a state has 1 to 4096"),
    ],
)
def test_invalid_record_is_refused(content: bytes, told: str) -> None:
    objects = unrecorded()
    objects.put("SHARDS", [content])
    with pytest.raises(RuntimeError, match=f"^{NAME} cannot be used: SHARDS {told}"):
        prepare_shared(objects, NAME, 16)
    assert objects.get("SHARDS") == content


def test_number_of_a_place_in_object_storage(s3_place: str) -> None:
    with closing(open_shared(s3_place, 64)) as objects:
        assert recorded_shards(objects, NAME) == 64
    with pytest.raises(RuntimeError, match=f"^the state at {s3_place} has 64 shards, but --shards is 16; "):
        open_shared(s3_place, 16)


@pytest.mark.parametrize("number", [0, 4097, "many"])
def test_setting_has_bounds(number: object) -> None:
    with pytest.raises(ValueError, match="shards"):
        Settings(shards=number)


def unrecorded() -> MemoryObjects:
    """Make the objects of a state by a version that recorded no number."""
    objects = MemoryObjects()
    write_format(objects, SHARED_FORMAT)
    with pytest.raises(Missing):
        objects.get("SHARDS")
    return objects
