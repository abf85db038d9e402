"""Functions of the loop language that NumPy does not have, on whole arrays: of NumPy block by block, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from engine.graph.op import Array, Namespace
from engine.loops.gamma_arrays import digamma_blocks, fill_polygamma, lgamma_blocks
from engine.loops.normal_arrays import erfinv_blocks, log_ndtr_blocks
from engine.loops.special import Floats, erf, erfc, in_blocks, library


class ArrayFunction(NamedTuple):
    """`fill(xp, x, out)` computes one from an array of any layout, and has so many `arrays` of a block at once."""

    fill: Callable[[Namespace, Array, Array], None]
    arrays: int = 16


def _fill(name: str, blocks: Callable[[Floats], Floats], xp: Namespace, x: Array, out: Array) -> None:
    """By `blocks` on NumPy, else by the library's function of this name."""
    if xp is np:
        in_blocks(np, blocks, x, out)
    else:
        getattr(library(xp), name)(x, out=out)


ARRAY_FUNCTIONS: Final[Mapping[str, ArrayFunction]] = MappingProxyType(
    {
        "erf": ArrayFunction(erf),
        "erfc": ArrayFunction(erfc),
        "lgamma": ArrayFunction(partial(_fill, "gammaln", lgamma_blocks)),
        "digamma": ArrayFunction(partial(_fill, "psi", digamma_blocks)),
        "trigamma": ArrayFunction(partial(fill_polygamma, order=1)),
        "erfinv": ArrayFunction(partial(_fill, "erfinv", erfinv_blocks)),
        "log_ndtr": ArrayFunction(partial(_fill, "log_ndtr", log_ndtr_blocks), 26),
    }
)
