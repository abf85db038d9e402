"""Sets of versions are read under one name each, for as long as somebody does."""

from __future__ import annotations

from service.store.tables import TensorVersion
from service.workers.memory import HeapAllocation
from service.workers.residents import Lending, VersionSets


def version(etag: str) -> TensorVersion:
    return TensorVersion("uint8", (4,), etag, HeapAllocation(4))


def lent(lending: Lending, *versions: TensorVersion) -> None:
    for each in versions:
        lending.lend(each)


def test_the_same_versions_are_one_set_and_others_another() -> None:
    residents: dict[tuple[str, str], TensorVersion] = {}
    lending, one, other = Lending(), version("1"), version("2")
    sets = VersionSets(residents, lending)
    lent(lending, one, one, other)
    first, again, second = sets.enter({"w": one}), sets.enter({"w": one}), sets.enter({"w": other})
    assert first == again != second
    assert residents == {(first, "w"): one, (second, "w"): other}
    assert sets.leave(first, {"w": one}) == []
    assert sets.leave(second, {"w": other}) == [(second, "w")]
    assert residents == {(first, "w"): one}
    assert sets.leave(first, {"w": one}) == [(first, "w")]
    assert not residents


def test_memory_of_what_is_read_stays_although_it_is_replaced() -> None:
    lending, one = Lending(), version("1")
    sets = VersionSets({}, lending)
    lending.lend(one)
    name = sets.enter({"w": one})
    lending.retire(one)
    assert len(one.memory.view) == 4
    sets.leave(name, {"w": one})
    assert len(one.memory.view) == 0
