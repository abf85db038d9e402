"""Precision: how products and convolutions may read float32 operands on a GPU."""

from __future__ import annotations

from typing import Final, Literal, get_args

Precision = Literal["float32", "tf32x3", "tf32", "bfloat16"]

#: all of them, the finest first
PRECISIONS: Final[tuple[Precision, ...]] = get_args(Precision)
#: IEEE 754: what a processor computes with, and a card unless it is told otherwise
IEEE: Final[Precision] = "float32"


def coarsest(*precisions: Precision) -> Precision:
    """The least exact of these; IEEE of none."""
    return max(precisions, key=PRECISIONS.index, default=IEEE)
