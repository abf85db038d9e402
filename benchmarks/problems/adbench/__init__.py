"""The objectives of ADBench, written from their mathematics, in float64, each vectorised as its library would have it.

F. Srajer, Z. Kukelova, A. Fitzgibbon, A benchmark of selected algorithmic differentiation tools on some problems in
computer vision and machine learning, Optimization Methods and Software 33 (2018); https://github.com/microsoft/ADBench
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from benchmarks.problems.adbench.bundle import bundle
from benchmarks.problems.adbench.hand import hand
from benchmarks.problems.adbench.mixture import mixture
from benchmarks.problems.adbench.recurrent import recurrent
from benchmarks.workload import Workload

ADBENCH: Final[dict[str, Callable[[], Workload]]] = {
    "gmm": mixture,
    "ba": bundle,
    "lstm": recurrent,
    "hand": hand,
}
