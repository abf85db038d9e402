"""Openings supersede earlier ones: any number of servers leaves as many objects as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from service.store.commit_objects import Note, Past, decode_head, encode_commit
from service.store.object_journal import ObjectJournal
from service.store.objects import Data
from service.store.ownership import SUPERSEDED
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import Clock, put, tensor, values

TENSORS = 30


class Counting(MemoryObjects):
    """Objects that count the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0

    def get(self, key: str, start: int = 0, stop: int | None = None) -> bytes:
        self.requests += 1
        return super().get(key, start, stop)

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        self.requests += 1
        super().put_new(key, data)

    def list(self, prefix: str, after: str = "") -> Iterable[str]:
        self.requests += 1
        return super().list(prefix, after)


class Place:
    """Place that servers open, one after the other."""

    def __init__(self) -> None:
        self.objects, self.clock = Counting(), Clock()

    def open(self, owner: str | None = "http://a:1") -> ObjectJournal:
        journal = ObjectJournal(self.objects, "the place", None, 1.0, self.clock, owner)
        self.state = journal.load()
        return journal

    def tidy(self, journal: ObjectJournal) -> None:
        """Let enough time pass to delete what is superseded, and wait until that is done."""
        self.clock.time += SUPERSEDED
        journal.look()
        if journal._tidied is not None:
            journal._tidied.result()

    @property
    def count(self) -> int:
        return len([*self.objects.list("")])


@pytest.mark.parametrize(
    ("openings", "releases"), [(60, False), (60, True), pytest.param(10_000, False, marks=pytest.mark.slow)]
)
def test_openings_leave_a_constant_number_of_objects(openings: int, releases: bool) -> None:
    place = Place()
    first = place.open()
    first.commit(put(*(tensor(f"w{n}", n) for n in range(TENSORS))))
    place.tidy(first)
    counts = set()
    for turn in range(openings):
        journal = place.open(f"http://{turn % 2}:1")
        journal.commit(put(tensor(f"w{turn % TENSORS}", turn)))
        place.tidy(journal)
        if releases:
            journal.close()
        counts.add(place.count)
    before = place.objects.requests
    last = place.open("http://a:1")
    assert place.objects.requests - before < 3 * TENSORS
    assert max(counts) < 2 * TENSORS
    recent = {f"w{turn % TENSORS}": turn for turn in range(openings - TENSORS, openings)}
    assert values(place.state) == recent
    last.close()


def test_openings_in_quick_succession_are_not_read() -> None:
    """Nothing may be deleted yet, but an opening reads what the last one says, and not all others."""
    place = Place()
    place.open().commit(put(tensor("w", 1)))
    for _ in range(200):
        place.open()
    before = place.objects.requests
    journal = place.open()
    assert place.objects.requests - before < 12
    assert place.count > 200
    place.tidy(journal)
    assert place.count == 2
    assert values(place.state) == {"w": 1}


def test_commits_of_servers_before_this_rule_stay() -> None:
    """They would take a free number for theirs, so none is freed; what comes later is."""
    place = Place()
    for number in (1, 2):  # openings without `past`
        place.objects.put_new(f"commits/{number:020}", encode_commit(number, f"{number:016x}", ())[0])
    for _ in range(3):
        journal = place.open()
        place.tidy(journal)
    kept = sorted(int(key.removeprefix("commits/")) for key in place.objects.list("commits/"))
    assert kept == [1, 2, 3, 5]


def test_past_roundtrip() -> None:
    past = Past((1, 2, 3, 7, 9, 10), (3, 9), 1.5, 2)
    parts, _ = encode_commit(11, "0" * 16, (), Note(1.0, opening=11, past=past, successor="http://b:1"))
    decoded = decode_head(b"".join(parts)).note
    assert (decoded.past, decoded.successor) == (past, "http://b:1")
