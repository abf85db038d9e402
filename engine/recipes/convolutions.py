"""Convolutions, whichever of the three tensors is the result."""

from __future__ import annotations

import numpy as np

from engine.graph.dtypes import has_loops
from engine.microkernels.convolution import DirectedConvolution, convolution
from engine.microkernels.recipe import Recipe


def convolution_recipe(directed: DirectedConvolution) -> Recipe | None:
    """Products of the kernel and columns."""
    return convolution(directed) if has_loops(np.dtype(directed.of.dtype)) else None
