"""Report of a run: what an executor tells of it to those who asked for it."""

from __future__ import annotations

from typing import NamedTuple

from engine.graph.precision import IEEE, Precision
from engine.graph.run_tier import UNCOMPILED, RunTier


class RunReport(NamedTuple):
    """Report of a run: how much compiled kernels did, and the least exact way in which a product read float32."""

    tier: RunTier = UNCOMPILED
    precision: Precision = IEEE
