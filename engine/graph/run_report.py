"""Report of a run: how much of it compiled kernels did, and how exactly its products read float32 operands."""

from __future__ import annotations

from typing import NamedTuple

from engine.graph.precision import IEEE, Precision
from engine.graph.run_tier import UNCOMPILED, RunTier


class RunReport(NamedTuple):
    """Report of a run: how much compiled kernels did, and the least exact way in which a product read float32."""

    tier: RunTier = UNCOMPILED
    precision: Precision = IEEE
