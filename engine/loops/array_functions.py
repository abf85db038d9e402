"""Functions of fused kernels that NumPy does not have, on whole arrays: of NumPy block by block, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from engine.graph.by_device import DeviceFunction
from engine.graph.op import Array
from engine.graph.run_context import RunContext
from engine.loops.gamma_arrays import digamma_blocks, fill_polygamma, lgamma_blocks, polygamma_blocks
from engine.loops.normal_arrays import erfinv_blocks, log_ndtr_blocks
from engine.loops.special import Floats, erf_blocks, erfc_blocks, in_blocks, library


class ArrayFunction(NamedTuple):
    """One of them: of a block of NumPy's, with so many `arrays` of its size at once; and how other modules fill one."""

    blocks: Callable[[Floats], Floats]
    elsewhere: Callable[[RunContext, Array, Array], None]
    arrays: int = 16


def _by_library(name: str, run: RunContext, x: Array, out: Array) -> None:
    getattr(library(run.xp), name)(x, out=out)


ARRAY_FUNCTIONS: Final[Mapping[str, ArrayFunction]] = MappingProxyType(
    {
        "erf": ArrayFunction(erf_blocks, partial(_by_library, "erf")),
        "erfc": ArrayFunction(erfc_blocks, partial(_by_library, "erfc")),
        "lgamma": ArrayFunction(lgamma_blocks, partial(_by_library, "gammaln")),
        "digamma": ArrayFunction(digamma_blocks, partial(_by_library, "psi")),
        "trigamma": ArrayFunction(partial(polygamma_blocks, np, 1), partial(fill_polygamma, order=1)),
        "erfinv": ArrayFunction(erfinv_blocks, partial(_by_library, "erfinv")),
        "log_ndtr": ArrayFunction(log_ndtr_blocks, partial(_by_library, "log_ndtr"), 26),
    }
)


@DeviceFunction
def fill_function(run: RunContext, name: str, x: Array, out: Array) -> None:
    """Fill `out` with the function of this name of an array of any layout."""
    ARRAY_FUNCTIONS[name].elsewhere(run, x, out)


@fill_function.on("cpu")
def _fill_in_blocks(run: RunContext, name: str, x: Array, out: Array) -> None:
    in_blocks(run, ARRAY_FUNCTIONS[name].blocks, x, out)
