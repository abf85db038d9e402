"""Memory of a version stays as long as somebody reads it."""

from __future__ import annotations

from service.store.tables import TensorVersion
from service.workers.memory import HeapAllocation
from service.workers.residents import ReaderCounts


def version() -> TensorVersion:
    return TensorVersion("uint8", (4,), "0" * 16, HeapAllocation(4))


def test_it_goes_with_its_last_reader() -> None:
    reader_counts, lent = ReaderCounts(), version()
    reader_counts.add_reader(lent)
    reader_counts.add_reader(lent)
    reader_counts.retire(lent)
    reader_counts.drop_readers(lent)
    assert len(lent.memory.view) == 4
    reader_counts.drop_readers(lent)
    assert len(lent.memory.view) == 0


def test_what_nobody_reads_goes_at_once() -> None:
    reader_counts, unread, read = ReaderCounts(), version(), version()
    reader_counts.retire(unread)
    assert len(unread.memory.view) == 0
    reader_counts.add_reader(read)
    reader_counts.drop_readers(read)
    assert len(read.memory.view) == 4, "it is current still"
    reader_counts.retire(read)
    assert len(read.memory.view) == 0


def test_versions_of_one_etag_are_apart() -> None:
    """As one is here that came from another server, and the shard has come here since."""
    reader_counts, mine, came = ReaderCounts(), version(), version()
    reader_counts.add_reader(came)
    reader_counts.retire(mine)
    assert (len(mine.memory.view), len(came.memory.view)) == (0, 4)
