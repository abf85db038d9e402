"""Arrays of every wire dtype, with values that are easily lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gradserve_client.tensors import DTYPES


@st.composite
def arrays(draw: st.DrawFn, dtypes: Sequence[str] = tuple(DTYPES)) -> np.ndarray[Any, Any]:
    """Arrays of these dtypes with any bits: every NaN, both zeros, subnormals."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    count = int(np.prod(shape))
    if dtype == np.bool_:
        raw = bytes(draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)))
    else:
        raw = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    return np.frombuffer(bytearray(raw), dtype.newbyteorder("<")).reshape(shape) if count else np.empty(shape, dtype)


def same_bits(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays have the same dtype, shape and bits."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
