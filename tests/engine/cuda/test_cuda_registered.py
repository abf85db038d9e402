"""Large feeds in mapped memory: registered once, copied in chunks, and unregistered before the memory is unmapped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine import Plan
from engine.codegen.native.machine_code import Reasons
from engine.cuda import transfers as cuda_registered
from engine.cuda.cupy_backend import CuPyExecutor
from engine.cuda.transfers import COPY_CHUNK_BYTES, RegisteredMemory
from engine.runtime.host_mapping import HostMapping, mapping_of
from tests.engine.cuda.card_memory import CARD, TO_DEVICE
from tests.engine.cuda.stand_in_card import StandInCard
from tests.engine.cuda.test_cuda_exchange import leaf, numbers, plan_of
from tests.engine.runtime.kernel_plans import warnings

Array = np.ndarray[Any, Any]
#: floats of a feed: two chunks and a remainder
COUNT = (2 * COPY_CHUNK_BYTES + 40) // 4
OFFSET = 64


@pytest.fixture(autouse=True)
def _fresh_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_registered, "_reasons", Reasons("by other memory: %s"))


@pytest.fixture
def copied(stand_in: StandInCard, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The sizes of the copies from registered memory to the card."""
    assert stand_in
    import cupy

    sizes: list[int] = []
    real = cupy.cuda.runtime.memcpyAsync

    def counting(to: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        if any(start <= source < start + CARD.pinned[start] for start in CARD.registered):
            assert kind == TO_DEVICE
            sizes.append(nbytes)
        real(to, source, nbytes, kind, stream)

    monkeypatch.setattr(cupy.cuda.runtime, "memcpyAsync", counting)
    yield sizes
    assert not CARD.registered


def mapped(seed: int = 0) -> tuple[HostMapping, Array]:
    """Shared memory, and a feed in it as a worker sees one: a view of a view of its bytes."""
    mapping = HostMapping(-1, OFFSET + 4 * COUNT)
    np.frombuffer(mapping, "float32", COUNT, OFFSET)[...] = numbers(COUNT, seed=seed)
    body = np.frombuffer(mapping, np.uint8)
    feed = np.frombuffer(memoryview(body)[OFFSET:], "float32").reshape(2, COUNT // 2)
    feed.flags.writeable = False
    return mapping, feed


def doubling() -> Plan:
    x = leaf(2, COUNT // 2)
    return plan_of(x * 2.0, x.sum())


def assert_doubled(results: list[Array], feed: Array) -> None:
    np.testing.assert_array_equal(results[0], feed * 2)
    assert results[1] == feed.sum(dtype="float64")


def test_repeated_feed_is_registered_once_and_copied_in_chunks(copied: list[int]) -> None:
    mapping, feed = mapped()
    plan, executor, before = doubling(), CuPyExecutor(), CARD.registrations
    assert_doubled(executor.run(plan, {0: feed}), feed)
    assert (CARD.registrations, copied) == (before, [])
    for seed in range(3):
        np.frombuffer(mapping, "float32", COUNT, OFFSET)[...] = numbers(COUNT, seed=seed)
        assert_doubled(executor.run(plan, {0: feed}), feed)
    assert CARD.registrations == before + 1
    assert copied == 3 * [COPY_CHUNK_BYTES, COPY_CHUNK_BYTES, 40]
    assert CARD.registered == [mapping.address]


@pytest.mark.usefixtures("copied")
def test_memory_is_unregistered_before_it_is_unmapped() -> None:
    plan, executor = doubling(), CuPyExecutor()
    for seed in range(3):
        mapping, feed = mapped(seed)
        for _ in range(2):
            assert_doubled(executor.run(plan, {0: feed}), feed)
        assert len(CARD.registered) == 1
        del mapping
        assert len(CARD.registered) == 1  # the feed still refers to it
        del feed
        assert not CARD.registered
    mapping, feed = mapped()
    for _ in range(2):
        executor.run(plan, {0: feed})
    with pytest.raises(BufferError):
        mapping.close()
    assert not CARD.registered  # deleting any view may close it
    assert_doubled(executor.run(plan, {0: feed}), feed)
    del feed
    mapping.close()


def test_memory_without_an_unmap_hook_is_not_registered(copied: list[int]) -> None:
    plan, executor, feed = doubling(), CuPyExecutor(), numbers(2, COUNT // 2)
    for _ in range(3):
        assert_doubled(executor.run(plan, {0: feed}), feed)
    assert copied == []


def test_transposed_feed_is_copied_first(copied: list[int]) -> None:
    _, feed = mapped()
    x = leaf(COUNT // 2, 2)
    plan, executor = plan_of(x + 1.0), CuPyExecutor()
    for _ in range(3):
        np.testing.assert_array_equal(executor.run(plan, {0: feed.T})[0], feed.T + 1)
    assert copied == []


@pytest.mark.parametrize("error", ["cudaErrorNotPermitted", "cudaErrorHostMemoryAlreadyRegistered"])
def test_memory_that_cuda_refuses_is_copied_normally(
    copied: list[int], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    """Each reason is logged once, and CUDA is called once for each mapping."""
    import cupy

    addresses: list[int] = []

    def refused(address: int, *_: int) -> None:
        addresses.append(address)
        raise cupy.cuda.runtime.CUDARuntimeError(error)

    monkeypatch.setattr(cupy.cuda.runtime, "hostRegister", refused)
    plan, executor = doubling(), CuPyExecutor()
    mappings = [mapped(seed) for seed in range(2)]
    for mapping, feed in mappings:
        for _ in range(3):
            assert_doubled(executor.run(plan, {0: feed}), feed)
        assert addresses.pop() == mapping.address
    assert not addresses
    assert copied == []
    assert warnings(caplog) == [f"by other memory: {error}"]


def test_registration_belongs_to_its_owner(copied: list[int]) -> None:
    """Only the owner knows how long it stays registered."""
    import cupy

    _, feed = mapped()
    first, second = RegisteredMemory(cupy), RegisteredMemory(cupy)
    for memory in (first, first, second, second):
        copy = memory.copy_to_gpu(feed, cupy.asarray)
        CARD.arrive()
        np.testing.assert_array_equal(copy.get(), feed)
    assert copied == [COPY_CHUNK_BYTES, COPY_CHUNK_BYTES, 40]


# ------------------------------------------------------------ mappings


def test_mapping_is_found_through_views() -> None:
    mapping, feed = mapped()
    assert mapping_of(feed) is mapping
    assert mapping_of(feed.view("uint8")[1:, ::2]) is mapping
    assert mapping_of(feed.copy()) is None
    assert mapping_of(np.frombuffer(b"12345678")) is None


def test_unmap_hook_runs_once_before_unmapping() -> None:
    seen: list[bytes] = []
    mapping = HostMapping(-1, 4096)
    mapping[:3] = b"abc"
    address = mapping.address

    def hook() -> None:
        import ctypes

        seen.append(ctypes.string_at(address, 3))

    mapping.on_unmap(hook)
    del mapping
    assert seen == [b"abc"]
    closed = HostMapping(-1, 4096)
    closed.on_unmap(lambda: seen.append(b"closed"))
    closed.close()
    del closed
    assert seen == [b"abc", b"closed"]


def test_failing_unmap_hook_is_ignored() -> None:
    mapping = HostMapping(-1, 4096)
    mapping.on_unmap(lambda: 1 / 0)
    del mapping
