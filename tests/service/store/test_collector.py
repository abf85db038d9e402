"""While a history is rewritten, Python's collector stops nobody for long: it goes through few objects at a time."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from service.core.process import YOUNG_OBJECTS, YOUNG_STEPS, tune_front_gc
from service.store.object_journal import ObjectJournal, Tidiness
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import commits, graph, put

GRAPHS = 20_000


@pytest.fixture
def gone_through() -> Iterator[list[int]]:
    """How many objects each collection goes through, with the collector as a front has it."""
    found: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(sum(len(gc.get_objects(generation=i)) for i in range(info["generation"] + 1)))

    before = gc.get_threshold()
    gc.collect()
    tune_front_gc()
    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.slow
def test_rewriting_a_history_is_collected_in_short_steps(gone_through: list[int]) -> None:
    objects = MemoryObjects()
    kept = ObjectJournal(objects, "the state", Tidiness(small_objects=GRAPHS - 1))
    kept.load()
    for number in range(GRAPHS):
        kept.commit(put(graphs=[graph(f"{number:064x}")]))
    assert kept._tidied is not None
    kept._tidied.result()
    kept.close()
    assert len(commits(objects)) < GRAPHS / 100, "it was rewritten"
    assert gone_through, "there was something to collect"
    # What goes meanwhile is taken off what has come, so there may be more that are new than were counted.
    assert max(gone_through) <= 2 * YOUNG_OBJECTS * (YOUNG_STEPS + 1)
