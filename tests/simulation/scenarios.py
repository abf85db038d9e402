"""Scenarios for rules whose absence few histories show. Each asserts the property that its rule protects."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from service.store.journal import SYSTEM, Environment, StateLost
from service.store.object_journal import ObjectJournal
from service.store.objects import Data, Exists
from service.store.ownership import SUPERSEDED
from tests.service.store.memory_objects import MemoryObjects
from tests.service.store.support import EAGER, Clock, after, answer, ended, put, tensor, values


class _Network(MemoryObjects):
    """An object store, with hooks before and after the next commit."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[str, Sequence[Data]], None] | None = None
        self.after: Callable[[], None] | None = None

    def put_new(self, key: str, data: Sequence[Data]) -> None:
        before, self.before = self.before, None
        if before is not None:
            before(key, data)
        super().put_new(key, data)
        after_put, self.after = self.after, None
        if after_put is not None:
            after_put()


def _commit_and_tidy(journal: ObjectJournal, *writes: object) -> None:
    journal.commit(put(*writes))  # type: ignore[arg-type]
    if journal._tidied is not None:
        journal._tidied.result()


def _delete_and_clean_up(journal: ObjectJournal, name: str) -> None:
    """Delete a tensor, and write until all of its objects are gone."""
    _commit_and_tidy(journal, ended(name))
    for value in range(4):
        _commit_and_tidy(journal, tensor("other", value))


def _open_journal(objects: MemoryObjects, lease: float = 0.0, environment: Environment = SYSTEM) -> ObjectJournal:
    journal = ObjectJournal(objects, "the place", EAGER, lease, environment)
    journal.load()
    return journal


def commit_in_doubt_is_not_repeated() -> None:
    """A successor reads a commit whose writer got no answer, and deletes its tensor."""
    objects = _Network()
    first = _open_journal(objects)

    def lost() -> None:
        _delete_and_clean_up(_open_journal(objects), "w")
        raise OSError(5, "the answer is lost")

    objects.after = lost
    first.commit(put(tensor("w", 1)))
    assert "w" not in values(after(objects))


def duplicate_request_does_not_revive_a_tensor() -> None:
    """The first of two equal requests arrives after the tensor of the second was deleted and cleaned up."""
    objects = _Network()
    journal = _open_journal(objects)
    late: list[tuple[str, Sequence[Data]]] = []

    def is_late(key: str, data: Sequence[Data]) -> None:
        late.append((key, data))
        raise OSError(5, "no answer came in time")

    objects.before = is_late
    _commit_and_tidy(journal, tensor("w", 1))
    _delete_and_clean_up(journal, "w")
    with suppress(Exists):
        objects.put_new(*late[0])
    assert "w" not in values(after(objects))


def late_commit_of_a_superseded_number_is_not_read() -> None:
    """The first of two equal requests arrives after the next server has freed its number."""
    objects, clock = _Network(), Clock()
    journal = _open_journal(objects, environment=clock)
    late: list[tuple[str, Sequence[Data]]] = []

    def is_late(key: str, data: Sequence[Data]) -> None:
        late.append((key, data))
        raise OSError(5, "no answer came in time")

    objects.before = is_late
    _commit_and_tidy(journal, tensor("w", 1))
    _delete_and_clean_up(journal, "w")
    second = _open_journal(objects, environment=clock)
    clock.time += SUPERSEDED
    _commit_and_tidy(second, tensor("other", 9))
    objects.put_new(*late[0])  # the number is free
    assert "w" not in values(after(objects))


def free_number_is_not_reused_within_a_lease() -> None:
    """Two servers begin while the first one believes that it has just looked."""
    objects, clock = MemoryObjects(), Clock()
    first = _open_journal(objects, environment=clock)
    first.commit(put(tensor("w", 1)))
    _open_journal(objects, environment=clock)
    _commit_and_tidy(_open_journal(objects, environment=clock), tensor("w", 2))
    with suppress(StateLost):
        first.commit(put(tensor("w", 3)))
        raise AssertionError("two servers have the place")


def last_number_is_not_reused() -> None:
    """All writes of a server have expired; the next server must not reuse their numbers."""
    objects = MemoryObjects()
    first = _open_journal(objects)
    for key in "abc":
        first.commit(put(answers=[answer(key, time.time() - 1)]))
        assert first._tidied is not None
        first._tidied.result()
    second = _open_journal(objects)
    with suppress(StateLost):
        first.commit(put(tensor("w", 1)))
        raise AssertionError("two servers have the place")
    second.close()


def released_server_does_not_answer() -> None:
    """The next server does not wait for the lease of a server that released the state."""
    journal = _open_journal(MemoryObjects(), lease=1e6)
    journal.commit(put(tensor("w", 1)))
    assert journal.holds()
    journal.close()
    assert not journal.holds()
