"""Report of a run: how much of it compiled kernels did, and how exactly its products read float32 operands."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

Precision = Literal["float32", "tf32x3", "tf32", "bfloat16"]

#: all of them, the finest first
PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)
#: IEEE 754: what a processor computes with, and a card unless it is told otherwise
IEEE: Final[Precision] = "float32"

#: share of a run that compiled kernels did
RunTier = Literal["uncompiled", "partly_compiled", "compiled"]

#: none: NumPy does all of it, or CuPy
UNCOMPILED: Final = "uncompiled"
#: those that save the most time; the others are not there yet, or could not be had
PARTLY_COMPILED: Final = "partly_compiled"
#: all that there are for it
COMPILED: Final = "compiled"


def coarsest(*precisions: Precision) -> Precision:
    """The least exact of these; IEEE of none."""
    return max(precisions, key=PRECISIONS.index, default=IEEE)


class RunReport(NamedTuple):
    """Report of a run: how much compiled kernels did, and the least exact way in which a product read float32."""

    tier: RunTier = UNCOMPILED
    precision: Precision = IEEE
