"""Layouts of operands of kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.engine.codegen.microkernels.running import Array


def lines(x: Array) -> Iterator[Array]:
    """Yield x in several layouts: unchanged, with axes in another order, and with the last axis strided or reversed."""
    yield x
    yield np.asfortranarray(x)
    wide = np.full((*x.shape[:-1], 2 * x.shape[-1]), np.nan, x.dtype)
    wide[..., ::2] = x
    yield wide[..., ::2]
    yield np.ascontiguousarray(x[..., ::-1])[..., ::-1]
