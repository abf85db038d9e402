"""Memory of incoming bodies: claimed step by step, cleared for the next caller, and revoked from unfinished bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from service.core.errors import Refusal
from service.workers.claims import Claims
from service.workers.memory import CLAIM_STEP, BodyAllocation, BodyMemory
from service.workers.shared_memory import LARGEST


class Bodies:
    """The bodies of a server with this much memory, and the numbers of dropped buffers."""

    def __init__(self, loop: asyncio.AbstractEventLoop, nbytes: int = 64 << 20) -> None:
        self.dropped: list[int] = []
        self.claims = Claims(nbytes)
        self.memory = BodyMemory(loop, self.dropped.append)

    def allocate(self, nbytes: int, tenant: str = "") -> BodyAllocation:
        return self.memory.allocate(nbytes, self.claims.claim(tenant))


def number(body: BodyAllocation) -> int:
    assert body.buffer is not None
    return body.buffer.number


@pytest.fixture
def bodies() -> Iterator[Bodies]:
    loop = asyncio.new_event_loop()
    bodies = Bodies(loop)
    yield bodies
    bodies.memory.buffers.close()
    loop.close()


def test_body_is_claimed_as_it_arrives(bodies: Bodies) -> None:
    body = bodies.allocate(3 * CLAIM_STEP + 10)
    assert (len(body.view), bodies.claims.held) == (3 * CLAIM_STEP + 10, 0)
    assert [body.reserve(nbytes) // CLAIM_STEP for nbytes in (1, CLAIM_STEP, CLAIM_STEP + 1)] == [1, 1, 2]
    assert bodies.claims.held == 2 * CLAIM_STEP
    assert body.reserve(3 * CLAIM_STEP + 1) == bodies.claims.held == len(body.view), "and never more than there is"
    assert body.reserve(1) == bodies.claims.held, "what has come is not claimed again"
    body.shrink(100)
    assert bodies.claims.held == 100
    body.release()
    body.release()
    assert (bodies.claims.held, len(body.view)) == (0, 0)


def test_buffer_is_cleared_for_the_next_caller(bodies: Bodies) -> None:
    first = bodies.allocate(1000)
    first.reserve(1000)
    first.view[:] = b"s" * 1000
    buffer_number = number(first)
    first.release()
    second = bodies.allocate(500)
    assert number(second) == buffer_number
    assert second.buffer is not None
    assert not any(second.buffer.memory[:1000])


@pytest.mark.parametrize(("nbytes", "still_referenced"), [(1000, True), (LARGEST + 1, False)])
def test_referenced_or_large_buffer_is_not_reused(bodies: Bodies, nbytes: int, still_referenced: bool) -> None:
    body = bodies.allocate(nbytes)
    body.still_referenced = still_referenced
    buffer_number = number(body)
    body.release()
    assert bodies.dropped == [buffer_number]
    assert number(bodies.allocate(nbytes)) != buffer_number


def test_empty_body(bodies: Bodies) -> None:
    body = bodies.allocate(0)
    assert (body.reserve(0), len(body.view), body.revocable) == (0, 0, True)


def test_unfinished_body_is_revoked_for_a_smaller_caller() -> None:
    loop = asyncio.new_event_loop()
    bodies = Bodies(loop, 4 * CLAIM_STEP)
    greedy, modest = bodies.allocate(4 * CLAIM_STEP, "greedy"), bodies.allocate(10, "modest")
    greedy.reserve(4 * CLAIM_STEP)
    assert modest.reserve(10) == 10
    assert not greedy.revocable
    with pytest.raises(Refusal) as refused:
        greedy.reserve(1)
    assert refused.value.code == "queue_full"
    bodies.memory.buffers.close()
    loop.close()


def test_pinned_body_is_not_revoked() -> None:
    loop = asyncio.new_event_loop()
    bodies = Bodies(loop, 4 * CLAIM_STEP)
    greedy, modest = bodies.allocate(4 * CLAIM_STEP, "greedy"), bodies.allocate(10, "modest")
    greedy.reserve(4 * CLAIM_STEP)
    greedy.pin()
    with pytest.raises(Refusal):
        modest.reserve(10)
    assert len(greedy.view) == 4 * CLAIM_STEP
    bodies.memory.buffers.close()
    loop.close()
