"""Canonical placing: the smallest numbers that place the same windows, so that products stay small."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.ops.conv.windows import Windows

LARGE = st.sampled_from([2**31, 2**57, 2**61, 2**62, 2**63 - 1])
DISTANCES = st.one_of(st.integers(1, 9), LARGE)
SEVERAL = st.integers(1, 4)


@st.composite
def windows(draw: st.DrawFn) -> Windows:
    """Windows on one axis."""
    padding = draw(st.one_of(st.integers(0, 9), LARGE))
    return Windows((draw(SEVERAL),), (draw(DISTANCES),), (padding,), (draw(DISTANCES),))


def overlaps(placed: Windows, extent: int, count: int) -> set[tuple[int, int, int]]:
    """Each window, tap and element that meet, by the definition in integers of any size."""
    (size,), (stride,), (padding,), (dilation,) = placed.size, placed.stride, placed.padding, placed.dilation
    each = ((w, t, w * stride + t * dilation - padding) for w, t in product(range(count), range(size)))
    return {triple for triple in each if 0 <= triple[2] < extent}


def by_slices(placed: Windows, extent: int, count: int) -> Iterator[tuple[int, int, int]]:
    for tap, places, elements in placed.tap_slices(0, extent, count):
        pairs = zip(range(count)[places], range(extent)[elements], strict=True)
        yield from ((window, tap, element) for window, element in pairs)


@given(of=windows(), extent=st.integers(1, 9), count=SEVERAL)
def test_tap_slices_match_the_definition(of: Windows, extent: int, count: int) -> None:
    actual = list(by_slices(of, extent, count))
    assert len(actual) == len(set(actual))
    assert set(actual) == overlaps(of, extent, count)


@given(of=windows(), extent=st.integers(1, 9))
def test_canonical_placing_keeps_windows_and_elements(of: Windows, extent: int) -> None:
    (count,), least = of.positions((extent,)), of.canonical_placing((extent,))
    assert least.positions((extent,)) == (count,)
    if 1 <= count <= 1000:
        assert overlaps(least, extent, count) == overlaps(of, extent, count)
    if count == 1:
        assert max(*least.stride, *least.padding) <= extent + least.reach[0] + 1
    if of.size == (1,):
        assert least.dilation == (1,)
    assert least.canonical_placing((extent,)) == least


@given(of=windows(), count=SEVERAL, more=st.one_of(st.integers(0, 9), LARGE, st.just(2**62 - 1)))
def test_canonical_spread_keeps_extent_and_elements(of: Windows, count: int, more: int) -> None:
    (extent,) = of.cover((count,))
    extent += more
    if extent < 0 or more >= max(*of.stride, *of.dilation):
        return
    least, (behind,) = of.canonical_spread((count,), (more,))
    assert least.cover((count,))[0] + behind == extent
    assert 0 <= behind < max(*least.stride, *least.dilation)
    assert min(*least.stride, *least.dilation) >= 1
    assert overlaps(least, extent, count) == overlaps(of, extent, count)
    if count == 1 and of.size == (1,):
        assert max(*least.stride, *least.padding, *least.dilation, behind) <= extent + 2
    assert least.canonical_spread((count,), (behind,)) == (least, (behind,))


def line(size: int, stride: int, padding: int, dilation: int) -> Windows:
    return Windows((size,), (stride,), (padding,), (dilation,))


def test_canonical_placing_examples() -> None:
    assert line(3, 2**61, 0, 1).canonical_placing((3,)) == line(3, 1, 0, 1)
    assert line(2, 2**61, 1, 3).canonical_placing((2,)) == line(2, 1, 1, 3)
    assert line(3, 7, 1, 1).canonical_placing((5,)) == line(3, 5, 1, 1)  # so that a second one does not fit
    assert line(1, 5, 2**57, 2**61).canonical_placing((2,)) == line(1, 5, 2**57, 1)  # two or more windows fit


def test_canonical_spread_examples() -> None:
    """Without effect: both distances; that of the taps alone; that of the windows alone."""
    assert line(1, 2**61, 0, 2**57).canonical_spread((1,), (0,)) == (line(1, 1, 0, 1), (0,))
    assert line(1, 2, 0, 2**57).canonical_spread((3,), (5,)) == (line(1, 2, 0, 6), (5,))
    assert line(2, 2**57, 0, 3).canonical_spread((1,), (5,)) == (line(2, 6, 0, 3), (5,))


def test_single_window_and_tap_at_any_distance() -> None:
    view = line(1, 2**62, 0, 2**62).view(np, np.array([[7.0]]), (1,))
    assert view.tolist() == [[[7.0]]]


def test_on_axes_adds_leading_axes_of_one_element() -> None:
    placed = Windows((3,), (2,), (1,), (4,))
    raised = placed.on_axes(3)
    assert raised == Windows((1, 1, 3), (1, 1, 2), (0, 0, 1), (1, 1, 4))
    assert raised.positions((1, 1, 20)) == (1, 1, *placed.positions((20,)))
    assert raised.on_axes(3) == raised
