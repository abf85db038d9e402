"""Topology: the number of worker processes, the purpose of each, and the memory that all of them take."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from service import machine
from service.budget import FRONT_LIMIT, WorkerPlaces
from service.settings import Settings

#: who has set these has decided
_BLAS: Final = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}


class Topology(NamedTuple):
    """`general` workers that take any task; whether there are a quick one and a spare; the GPU of each, if it has one.

    A GPU has one worker, which takes short tasks too, and no spare: each process that opens it takes hundreds of
    megabytes of its memory, and two would take turns at it. Beside processors, one worker more that never runs long
    tasks, and one that only waits to take the place of another, cost memory alone.
    """

    general: int
    quick: bool
    spare: bool
    cards: tuple[str, ...]

    @property
    def processes(self) -> int:
        """How many there are in all."""
        return self.general + self.quick + self.spare

    def environment(self, number: int) -> Mapping[str, str]:
        """What the worker of a number finds in its environment: its card; and how many threads BLAS shall start.

        Without that, each would start one for every processor, though it may use only its share of them.
        """
        threads = {} if _BLAS & os.environ.keys() else {"OPENBLAS_NUM_THREADS": str(machine.cpus_each(self.general))}
        return threads | ({"CUDA_VISIBLE_DEVICES": self.cards[number]} if self.cards else {})


def topology_for(settings: Settings, device: str) -> Topology:
    """Those that a server has on a device."""
    if device == "cpu":
        return Topology(*WorkerPlaces(settings.workers), cards=())
    cards = machine.cards()
    return Topology(max(1, len(cards)), quick=False, spare=False, cards=cards)


def share_of_memory(settings: Settings) -> int:
    """The bytes that each worker may take: all of them together, and the front, no more than there are.

    Bodies and tensors that are held come on top: they are shared, and have budgets of their own. Whether cards compute
    is not known yet when the first worker starts, so there are as many as there may be.
    """
    processes = max(topology_for(settings, "cpu").processes, len(machine.cards()))
    return max(0, machine.memory_bytes() - FRONT_LIMIT) // processes
