"""Version sets: each set has one name, for as long as it has readers."""

from __future__ import annotations

from service.store.tables import TensorVersion
from service.workers.memory import HeapAllocation
from service.workers.residents import ReaderCounts, VersionSets


def version(etag: str) -> TensorVersion:
    return TensorVersion("uint8", (4,), etag, HeapAllocation(4))


def add_readers(reader_counts: ReaderCounts, *versions: TensorVersion) -> None:
    for each in versions:
        reader_counts.add_reader(each)


def test_equal_versions_share_a_set() -> None:
    residents: dict[tuple[str, str], TensorVersion] = {}
    reader_counts, one, other = ReaderCounts(), version("1"), version("2")
    sets = VersionSets(residents, reader_counts)
    add_readers(reader_counts, one, one, other)
    first, again, second = sets.enter({"w": one}), sets.enter({"w": one}), sets.enter({"w": other})
    assert first == again != second
    assert residents == {(first, "w"): one, (second, "w"): other}
    assert sets.leave(first, {"w": one}) == []
    assert sets.leave(second, {"w": other}) == [(second, "w")]
    assert residents == {(first, "w"): one}
    assert sets.leave(first, {"w": one}) == [(first, "w")]
    assert not residents


def test_memory_of_a_replaced_version_lives_while_it_is_read() -> None:
    reader_counts, one = ReaderCounts(), version("1")
    sets = VersionSets({}, reader_counts)
    reader_counts.add_reader(one)
    name = sets.enter({"w": one})
    reader_counts.retire(one)
    assert len(one.memory.view) == 4
    sets.leave(name, {"w": one})
    assert len(one.memory.view) == 0
