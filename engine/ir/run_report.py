"""Report of a run: how much of it ran compiled kernels, and how precisely its products read float32 operands."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, get_args

Precision = Literal["float32", "tf32x3", "tf32", "bfloat16"]

#: all precisions, finest first
PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)
#: IEEE 754 single precision: always used by CPUs, and by GPUs by default
IEEE: Final[Precision] = "float32"

#: how much of a run was done by compiled kernels
RunTier = Literal["uncompiled", "partly_compiled", "compiled"]

#: nothing: NumPy or CuPy runs every op
UNCOMPILED: Final = "uncompiled"
#: the kernels that save the most time; the others are not compiled yet, or failed to compile
PARTLY_COMPILED: Final = "partly_compiled"
#: all kernels of the plan
COMPILED: Final = "compiled"


def coarsest(*precisions: Precision) -> Precision:
    """Return the least precise of these; IEEE if there are none."""
    return max(precisions, key=PRECISIONS.index, default=IEEE)


class RunReport(NamedTuple):
    """Report of a run: the share of compiled kernels, and the least precise reading of float32 by a product.

    `precision` is None if no product or convolution read float32 operands.
    """

    tier: RunTier = UNCOMPILED
    precision: Precision | None = None
