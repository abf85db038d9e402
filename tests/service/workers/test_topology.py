"""Topology: how many workers there are on processors and on cards, and what each finds in its environment."""

from __future__ import annotations

import pytest

from service.core import machine
from service.core.budget import FRONT_LIMIT
from service.core.settings import Settings
from service.workers.topology import Topology, share_of_memory, topology_for

BLAS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve processors, no card, and nobody who has decided on threads."""
    monkeypatch.setattr(machine, "cpus", lambda: 12)
    monkeypatch.setattr(machine, "visible_gpus", lambda: ())
    monkeypatch.setattr(machine, "memory_bytes", lambda: 16 << 30)
    for name in BLAS:
        monkeypatch.delenv(name, raising=False)


def settings(workers: int = 3) -> Settings:
    return Settings(device="auto", workers=workers)


def with_cards(monkeypatch: pytest.MonkeyPatch, *cards: str) -> None:
    monkeypatch.setattr(machine, "visible_gpus", lambda: cards)


def test_on_processors_there_are_a_quick_worker_and_a_spare_beside_those_asked_for() -> None:
    assert topology_for(settings(3), "cpu") == Topology(3, quick=True, spare=True, cards=())
    assert topology_for(settings(3), "cpu").processes == 5


@pytest.mark.parametrize("cards", [("0",), ("0", "2"), ("GPU-1", "GPU-2", "GPU-3")])
def test_each_card_has_one_worker_and_no_other(monkeypatch: pytest.MonkeyPatch, cards: tuple[str, ...]) -> None:
    with_cards(monkeypatch, *cards)
    found = topology_for(settings(3), "cuda:0")
    assert found == Topology(len(cards), quick=False, spare=False, cards=cards)
    assert found.processes == len(cards)
    assert [found.environment(i)["CUDA_VISIBLE_DEVICES"] for i in range(len(cards))] == [*cards]


def test_a_card_that_the_driver_does_not_name_has_a_worker_too() -> None:
    found = topology_for(settings(3), "cuda:0")
    assert found.processes == 1
    assert "CUDA_VISIBLE_DEVICES" not in found.environment(0)


def test_processors_do_not_get_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    with_cards(monkeypatch, "0", "1")
    assert topology_for(settings(3), "cpu").environment(4).keys() == {"OPENBLAS_NUM_THREADS"}


@pytest.mark.parametrize(("workers", "threads"), [(1, "12"), (3, "4"), (5, "2"), (12, "1"), (64, "1")])
def test_blas_starts_a_share_of_the_threads(workers: int, threads: str) -> None:
    """Among those that compute at the same time: the quick worker and the spare are beside them."""
    assert topology_for(settings(workers), "cpu").environment(0) == {"OPENBLAS_NUM_THREADS": threads}


@pytest.mark.parametrize("name", BLAS)
def test_who_has_said_how_many_threads_is_not_contradicted(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "7")
    assert topology_for(settings(), "cpu").environment(0) == {}
    with_cards(monkeypatch, "5")
    assert topology_for(settings(), "cuda:0").environment(0) == {"CUDA_VISIBLE_DEVICES": "5"}


@pytest.mark.parametrize(("workers", "cards", "processes"), [(2, 0, 4), (2, 3, 4), (2, 8, 8), (1, 4, 4)])
def test_the_memory_beside_the_front_is_divided_among_as_many_as_there_may_be(
    monkeypatch: pytest.MonkeyPatch, workers: int, cards: int, processes: int
) -> None:
    with_cards(monkeypatch, *map(str, range(cards)))
    assert share_of_memory(settings(workers)) == ((16 << 30) - FRONT_LIMIT) // processes


def test_no_share_is_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory_bytes", lambda: FRONT_LIMIT - 1)
    assert share_of_memory(settings()) == 0
