"""Residue classes: together they hold each element once, and each overlap of a tap and an element once."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.ops.conv.im2col import residue_classes, residues_cover
from engine.ops.conv.windows import Windows


@given(
    st.integers(1, 5), st.integers(1, 5), st.integers(-2, 4), st.integers(1, 4), st.integers(1, 14), st.integers(1, 6)
)
def test_every_overlap_is_in_one_class(
    size: int, stride: int, padding: int, dilation: int, extent: int, positions: int
) -> None:
    windows = Windows((size,), (stride,), (padding,), (dilation,))
    expected = {
        (p, t, p * stride + t * dilation - padding)
        for p in range(positions)
        for t in range(size)
        if 0 <= p * stride + t * dilation - padding < extent
    }
    overlaps: Counter[tuple[int, int, int]] = Counter()
    held: Counter[int] = Counter()
    for taps, places, each in residue_classes(windows, (extent,), (positions,)):
        chosen, elements = np.arange(size)[taps], np.arange(extent)[places]
        held.update(elements.tolist())
        assert (len(chosen), each.stride) == (each.size[0], (1,))
        for u, element in enumerate(elements):
            for k, tap in enumerate(chosen):
                p = u + k * each.dilation[0] - each.padding[0]
                if 0 <= p < positions:
                    overlaps[p, int(tap), int(element)] += 1
    assert set(overlaps) == expected
    assert max([*overlaps.values(), *held.values()], default=1) == 1
    if residues_cover(windows):
        assert set(held) == set(range(extent))


def test_residues_cover() -> None:
    assert residues_cover(Windows((3, 3), (2, 3), (0, 0), (1, 1)))
    assert not residues_cover(Windows((3, 1), (2, 2), (0, 0), (1, 1)))
    assert not residues_cover(Windows((3,), (2,), (0,), (2,)))
