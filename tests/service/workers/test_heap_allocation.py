"""Heap allocations are writable, private to the process, and empty after their release."""

from __future__ import annotations

from service.workers.memory import HeapAllocation


def test_heap_memory_is_writable_and_private() -> None:
    memory = HeapAllocation(3)
    memory.view[:] = b"abc"
    assert bytes(memory.view) == b"abc"
    assert memory.buffer is None


def test_release_is_idempotent_and_keeps_existing_views() -> None:
    memory = HeapAllocation(3)
    view = memory.view
    memory.release()
    memory.release()
    assert len(memory.view) == 0
    assert len(view) == 3, "who still looks at them may"
