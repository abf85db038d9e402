"""All workloads by name, in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.problems.adbench import ADBENCH
from benchmarks.problems.composites import COMPOSITES
from benchmarks.problems.decompositions import DECOMPOSITIONS
from benchmarks.problems.deep_networks import DEEP, DEEP_ON_CARDS
from benchmarks.problems.layers import LAYERS
from benchmarks.problems.loops import LOOPS, PLANNED
from benchmarks.problems.networks import NETWORKS
from benchmarks.problems.opset import OPS
from benchmarks.problems.scaling import SCALING
from benchmarks.problems.spectra import SPECTRA
from benchmarks.workload import Maker

GROUPS: Final[Mapping[str, Mapping[str, Maker]]] = {
    "workloads": NETWORKS,
    "networks": DEEP,
    "composites": COMPOSITES,
    "layers": LAYERS,
    "adbench": ADBENCH,
    "loops": LOOPS,
    "spectra": SPECTRA,
    "decompositions": DECOMPOSITIONS,
    "scaling": SCALING,
    "ops": OPS,
    "cards": DEEP_ON_CARDS,
}
#: groups that are measured where they are named alone: what they ask for makes no difference on a processor
_BY_NAME: Final = ("cards",)


def find(name: str) -> Maker:
    """What makes the workload of this name. Raises KeyError."""
    return {known: maker for group in (PLANNED, *GROUPS.values()) for known, maker in group.items()}[name]


def chosen(only: Sequence[str]) -> dict[str, str]:
    """The names of the workloads that these names of workloads and groups mean, each with its group; by default all but
    those of cards. Raises ValueError for a name that is neither.
    """
    asked = only or [group for group in GROUPS if group not in _BY_NAME]
    known = {name for group in GROUPS.values() for name in group}
    if wrong := [name for name in asked if name not in known and name not in GROUPS]:
        raise ValueError(f"there is no {', '.join(wrong)}: there are {', '.join([*GROUPS, *sorted(known)])}")
    return {name: group for group, makers in GROUPS.items() for name in makers if group in asked or name in asked}
