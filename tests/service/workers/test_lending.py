"""Memory of a version stays as long as somebody reads it."""

from __future__ import annotations

from service.store.tables import TensorVersion
from service.workers.memory import HeapAllocation
from service.workers.residents import Lending


def version() -> TensorVersion:
    return TensorVersion("uint8", (4,), "0" * 16, HeapAllocation(4))


def test_it_goes_with_its_last_reader() -> None:
    lending, lent = Lending(), version()
    lending.lend(lent)
    lending.lend(lent)
    lending.retire(lent)
    lending.give_back(lent)
    assert len(lent.memory.view) == 4
    lending.give_back(lent)
    assert len(lent.memory.view) == 0


def test_what_nobody_reads_goes_at_once() -> None:
    lending, unread, read = Lending(), version(), version()
    lending.retire(unread)
    assert len(unread.memory.view) == 0
    lending.lend(read)
    lending.give_back(read)
    assert len(read.memory.view) == 4, "it is current still"
    lending.retire(read)
    assert len(read.memory.view) == 0


def test_versions_of_one_etag_are_apart() -> None:
    """As one is here that came from another server, and the shard has come here since."""
    lending, mine, came = Lending(), version(), version()
    lending.lend(came)
    lending.retire(mine)
    assert (len(mine.memory.view), len(came.memory.view)) == (0, 4)
