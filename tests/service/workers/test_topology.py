"""Topology: the number of workers on processors and on GPUs, and the environment of each."""

from __future__ import annotations

import pytest

from service.core import machine
from service.core.budget import FRONT_LIMIT
from service.core.settings import Settings
from service.workers.topology import Topology, share_of_memory, topology_for

BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of twelve processors without a GPU, and no setting of the number of threads."""
    monkeypatch.setattr(machine, "cpus", lambda: 12)
    monkeypatch.setattr(machine, "visible_gpus", lambda: ())
    monkeypatch.setattr(machine, "memory_bytes", lambda: 16 << 30)
    for name in BLAS:
        monkeypatch.delenv(name, raising=False)


def settings(workers: int = 3) -> Settings:
    return Settings(device="auto", workers=workers)


def with_cards(monkeypatch: pytest.MonkeyPatch, *cards: str) -> None:
    monkeypatch.setattr(machine, "visible_gpus", lambda: cards)


def test_processors_get_a_quick_worker_and_a_spare_in_addition() -> None:
    assert topology_for(settings(3), "cpu") == Topology(3, quick=True, spare=True, cards=())
    assert topology_for(settings(3), "cpu").processes == 5


@pytest.mark.parametrize("cards", [("0",), ("0", "2"), ("GPU-1", "GPU-2", "GPU-3")])
def test_each_gpu_has_one_worker(monkeypatch: pytest.MonkeyPatch, cards: tuple[str, ...]) -> None:
    with_cards(monkeypatch, *cards)
    topology = topology_for(settings(3), "cuda:0")
    assert topology == Topology(len(cards), quick=False, spare=False, cards=cards)
    assert topology.processes == len(cards)
    assert [topology.environment(i)["CUDA_VISIBLE_DEVICES"] for i in range(len(cards))] == [*cards]


def test_unnamed_gpu_has_a_worker() -> None:
    topology = topology_for(settings(3), "cuda:0")
    assert topology.processes == 1
    assert "CUDA_VISIBLE_DEVICES" not in topology.environment(0)


def test_workers_on_processors_get_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with_cards(monkeypatch, "0", "1")
    assert topology_for(settings(3), "cpu").environment(4).keys() == {"OPENBLAS_NUM_THREADS"}


@pytest.mark.parametrize(("workers", "threads"), [(1, "12"), (3, "4"), (5, "2"), (12, "1"), (64, "1")])
def test_blas_gets_a_share_of_the_threads(workers: int, threads: str) -> None:
    """The share is among the general workers; the quick worker and the spare come on top."""
    assert topology_for(settings(workers), "cpu").environment(0) == {"OPENBLAS_NUM_THREADS": threads}


@pytest.mark.parametrize("name", BLAS)
def test_explicit_thread_count_is_respected(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "7")
    assert topology_for(settings(), "cpu").environment(0) == {}
    with_cards(monkeypatch, "5")
    assert topology_for(settings(), "cuda:0").environment(0) == {"CUDA_VISIBLE_DEVICES": "5"}


@pytest.mark.parametrize(("workers", "cards", "processes"), [(2, 0, 4), (2, 3, 4), (2, 8, 8), (1, 4, 4)])
def test_memory_beside_the_front_is_divided_among_workers(
    monkeypatch: pytest.MonkeyPatch, workers: int, cards: int, processes: int
) -> None:
    with_cards(monkeypatch, *map(str, range(cards)))
    assert share_of_memory(settings(workers)) == ((16 << 30) - FRONT_LIMIT) // processes


def test_memory_share_is_never_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory_bytes", lambda: FRONT_LIMIT - 1)
    assert share_of_memory(settings()) == 0
