"""The memory of a version lives as long as it has readers."""

from __future__ import annotations

from service.store.tables import TensorVersion
from service.workers.memory import HeapAllocation
from service.workers.residents import ReaderCounts


def version() -> TensorVersion:
    return TensorVersion("uint8", (4,), "0" * 16, HeapAllocation(4))


def test_retired_version_is_freed_with_its_last_reader() -> None:
    reader_counts, lent = ReaderCounts(), version()
    reader_counts.add_reader(lent)
    reader_counts.add_reader(lent)
    reader_counts.retire(lent)
    reader_counts.drop_readers(lent)
    assert len(lent.memory.view) == 4
    reader_counts.drop_readers(lent)
    assert len(lent.memory.view) == 0


def test_version_without_readers_is_freed_at_once() -> None:
    reader_counts, unread, read = ReaderCounts(), version(), version()
    reader_counts.retire(unread)
    assert len(unread.memory.view) == 0
    reader_counts.add_reader(read)
    reader_counts.drop_readers(read)
    assert len(read.memory.view) == 4, "it is current still"
    reader_counts.retire(read)
    assert len(read.memory.view) == 0


def test_versions_with_equal_etags_are_separate() -> None:
    """One came from another server, and the shard has moved to this server since."""
    reader_counts, mine, received = ReaderCounts(), version(), version()
    reader_counts.add_reader(received)
    reader_counts.retire(mine)
    assert (len(mine.memory.view), len(received.memory.view)) == (0, 4)
