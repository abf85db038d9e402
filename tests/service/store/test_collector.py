"""Pauses of Python's garbage collector while a history is rewritten: each collection visits few objects."""

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
def visited_counts() -> Iterator[list[int]]:
    """Number of objects that each collection visits, with the collector tuned as in a front process."""
    counts: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            counts.append(sum(len(gc.get_objects(generation=i)) for i in range(info["generation"] + 1)))

    before = gc.get_threshold()
    gc.collect()
    tune_front_gc()
    gc.callbacks.append(note)
    yield counts
    gc.callbacks.remove(note)
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.slow
def test_collections_visit_few_objects_while_rewriting(visited_counts: list[int]) -> None:
    objects = MemoryObjects()
    journal = ObjectJournal(objects, "the state", Tidiness(small_objects=GRAPHS - 1))
    journal.load()
    for number in range(GRAPHS):
        journal.commit(put(graphs=[graph(f"{number:064x}")]))
    assert journal._tidied is not None
    journal._tidied.result()
    journal.close()
    assert len(commits(objects)) < GRAPHS / 100, "it was rewritten"
    assert visited_counts, "there was something to collect"
    # Freed objects are subtracted from the count of new ones, so there may be more new objects than counted.
    assert max(visited_counts) <= 2 * YOUNG_OBJECTS * (YOUNG_STEPS + 1)
