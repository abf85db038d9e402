"""The operations of `Objects`, on each implementation: memory, a folder, obstore, and an S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from service.store.folder import Folder
from service.store.objects import Exists, Missing, Objects
from service.store.remote import Remote, open_remote
from tests.service.store.memory_objects import MemoryObjects

KINDS = ("memory", "folder", "obstore", pytest.param("s3", marks=pytest.mark.slow))


@pytest.fixture(params=KINDS)
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Objects]:
    opened = open_objects(request, tmp_path)
    yield opened
    opened.close()


def open_objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    if request.param == "memory":
        return MemoryObjects()
    if request.param == "folder":
        return Folder(tmp_path / "state")
    if request.param == "obstore":
        from obstore.store import MemoryStore

        store = MemoryStore()
        return Remote(lambda *_: store)
    return open_remote(request.getfixturevalue("s3_place"))


def test_get_returns_the_stored_object(objects: Objects) -> None:
    objects.put("FORMAT", [b"one", memoryview(b" and "), b"another"])
    assert objects.get("FORMAT") == b"one and another"
    objects.put("FORMAT", [])
    assert objects.get("FORMAT") == b""


def test_ranges_are_read(objects: Objects) -> None:
    objects.put_new("commits/1", [b"0123456789"])
    assert objects.get("commits/1", 2, 5) == b"234"
    assert objects.get("commits/1", 8, 50) == b"89"
    assert objects.get("commits/1", 0, 50) == b"0123456789"
    assert objects.get("commits/1", 7) == b"789"


def test_many_pieces_become_one_object(objects: Objects) -> None:
    pieces = [bytes([number % 251]) * (number % 7) for number in range(5000)]
    objects.put_new("commits/1", pieces)
    assert objects.get("commits/1") == b"".join(pieces)


def test_missing_objects(objects: Objects) -> None:
    for get in (
        lambda: objects.get("commits/1"),
        lambda: objects.get("commits/1", 0, 9),
        lambda: objects.get("FORMAT"),
    ):
        with pytest.raises(Missing):
            get()
    assert list(objects.list("commits/")) == []
    objects.delete(["commits/1", "FORMAT"])
    objects.delete([])


def test_put_new_does_not_replace(objects: Objects) -> None:
    objects.put_new("commits/1", [b"first"])
    with pytest.raises(Exists):
        objects.put_new("commits/1", [b"second"])
    assert objects.get("commits/1") == b"first"
    objects.delete(["commits/1"])
    objects.put_new("commits/1", [b"third"])
    assert objects.get("commits/1") == b"third"


def test_list_and_delete(objects: Objects) -> None:
    for key in ("FORMAT", "commits/2", "commits/1", "holds/1.a"):
        objects.put(key, [b"x"])
    assert sorted(objects.list("commits/")) == ["commits/1", "commits/2"]
    assert sorted(objects.list("")) == ["FORMAT", "commits/1", "commits/2", "holds/1.a"]
    objects.delete(["commits/1", "holds/1.a", "commits/9"])
    assert sorted(objects.list("")) == ["FORMAT", "commits/2"]


def test_only_one_of_racing_writers_wins(objects: Objects) -> None:
    racers = 8
    start = Barrier(racers)

    def race(number: int, turn: int) -> bool:
        start.wait()
        try:
            objects.put_new(f"commits/{turn}", [f"{number}".encode() * 1000])
        except Exists:
            return False
        return True

    with ThreadPoolExecutor(racers) as threads:
        for turn in range(20):
            won = list(threads.map(race, range(racers), [turn] * racers))
            assert won.count(True) == 1
            assert objects.get(f"commits/{turn}") == f"{won.index(True)}".encode() * 1000
