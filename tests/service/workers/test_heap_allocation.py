"""Memory of one process is there to be written, shows nothing to others, and is empty once it was given back."""

from __future__ import annotations

from service.workers.memory import HeapAllocation


def test_so_many_bytes_can_be_written_and_no_other_process_sees_them() -> None:
    memory = HeapAllocation(3)
    memory.view[:] = b"abc"
    assert bytes(memory.view) == b"abc"
    assert memory.buffer is None


def test_nothing_is_left_of_what_was_given_back_and_twice_is_once() -> None:
    memory = HeapAllocation(3)
    kept = memory.view
    memory.release()
    memory.release()
    assert len(memory.view) == 0
    assert len(kept) == 3, "who still looks at them may"
