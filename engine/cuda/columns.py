"""Columns on a GPU (im2col): lay out a convolution's windows as a matrix, and gather the images from one (col2im).

A line of the matrix is a channel and a tap; along it are the positions of the windows, image after image. Neighbouring
threads have neighbouring positions, so their writes, and most reads, coalesce. In col2im, each element of the images
finds the taps that reach it, and adds up their columns in the order of the taps: no two threads add to one element, so
no atomics are needed.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from engine.codegen.microkernels.convolution import TensorLayout
from engine.cuda.card_recipe import CardEntry, CardPlace, LaunchPhase, are_addressable, is_wide, launch_lines

#: entries of these kernels' tables
COLUMN_ENTRIES: Final = 36
#: threads that keep a GPU busy: with fewer, several threads share the taps of a channel
_BUSY: Final = 1 << 16

#: kernels for im2col and col2im
COLUMN_KERNELS: Final = """\
KERNEL lay_columns(GIVEN) {
const long long* const table = TABLE;
const S first = table[3], part = table[4], lines = table[5], splits = table[6];
const long long line_step = table[7], image_step = table[8];
const S width = table[11], height = table[10], taps0 = table[12], taps1 = table[13], taps2 = table[14];
const S extent0 = table[15], extent1 = table[16], extent2 = table[17];
EACH_ITEM(item, table[2]) {
const S image = (S)item / part, place = (S)item % part, here = first + place;
const S place2 = here % width, row = here / width;
const S start0 = row / height * (S)table[18] - (S)table[21];
const S start1 = row % height * (S)table[19] - (S)table[22];
const S start2 = place2 * (S)table[20] - (S)table[23];
EACH_LINE(line, lines) {
const S channel = (S)line / splits;
const char* const x = (const char*)table[0] + image * table[27] + channel * table[28];
E* const columns = (E*)table[1] + channel * (taps0 * taps1 * taps2 * line_step) + image * image_step + place;
for (S outer = (S)line % splits; outer < taps0 * taps1; outer += splits) {
const S at0 = start0 + outer / taps1 * (S)table[24], at1 = start1 + outer % taps1 * (S)table[25];
const int inside = at0 >= 0 && at0 < extent0 && at1 >= 0 && at1 < extent1;
const long long offset = at0 * table[29] + at1 * table[30];
E* column = columns + outer * (taps2 * line_step);
S at2 = start2;
for (S tap = 0; tap < taps2; tap++) {
E seen = 0;
if (inside && at2 >= 0 && at2 < extent2) seen = *(const E*)(x + offset + at2 * table[31]);
*column = seen;
at2 += (S)table[26]; column += line_step;
}
}
}
}
}
DEVICE S first_tap(S at, S taps, S dilation, S stride, S apart) {
const S most = taps < apart ? taps : apart;
for (S tap = 0; tap < most; tap++) if ((at - tap * dilation) % stride == 0) return tap;
return taps;
}
DEVICE S first_inside(S tap, S place, S taps, S apart, S places_apart, S places) {
while (tap < taps && place >= places) { tap += apart; place -= places_apart; }
return tap;
}
KERNEL gather_columns(GIVEN) {
const long long* const table = TABLE;
const S part = table[3], lines = table[4];
const long long line_step = table[5], image_step = table[6];
const S width = table[8], height = table[7];
const S places0 = table[9], places1 = table[10], places2 = table[11];
const S taps0 = table[12], taps1 = table[13], taps2 = table[14];
const S stride0 = table[15], stride1 = table[16], stride2 = table[17];
const S dilation0 = table[21], dilation1 = table[22], dilation2 = table[23];
const S apart0 = table[24], apart1 = table[25], apart2 = table[26];
const S moved0 = table[27], moved1 = table[28], moved2 = table[29];
EACH_ITEM(item, table[2]) {
const S image = (S)item / part, here = (S)item % part, row = here / width;
const S element0 = row / height, element1 = row % height, element2 = here % width;
const S at0 = element0 + (S)table[18], at1 = element1 + (S)table[19], at2 = element2 + (S)table[20];
const S some0 = first_tap(at0, taps0, dilation0, stride0, apart0);
const S some1 = first_tap(at1, taps1, dilation1, stride1, apart1);
const S some2 = first_tap(at2, taps2, dilation2, stride2, apart2);
const S tap0 = first_inside(some0, (at0 - some0 * dilation0) / stride0, taps0, apart0, moved0, places0);
const S tap1 = first_inside(some1, (at1 - some1 * dilation1) / stride1, taps1, apart1, moved1, places1);
const S tap2 = first_inside(some2, (at2 - some2 * dilation2) / stride2, taps2, apart2, moved2, places2);
const S place0 = at0 - tap0 * dilation0, place1 = at1 - tap1 * dilation1, place2 = at2 - tap2 * dilation2;
EACH_LINE(channel, lines) {
const F* const columns = (const F*)table[0] + channel * (taps0 * taps1 * taps2 * line_step) + image * image_step;
F sum = 0;
S p0 = place0 / stride0;
for (S t0 = tap0; t0 < taps0 && place0 >= 0 && p0 >= 0; t0 += apart0, p0 -= moved0) {
S p1 = place1 / stride1;
for (S t1 = tap1; t1 < taps1 && place1 >= 0 && p1 >= 0; t1 += apart1, p1 -= moved1) {
S p2 = place2 / stride2;
for (S t2 = tap2; t2 < taps2 && place2 >= 0 && p2 >= 0; t2 += apart2, p2 -= moved2)
sum += columns[((t0 * taps1 + t1) * taps2 + t2) * line_step + (p0 * places1 + p1) * places2 + p2];
}
}
char* const y = (char*)table[1] + image * table[30] + (long long)channel * table[31];
*(E*)(y + element0 * table[32] + element1 * table[33] + element2 * table[34]) = NARROW(sum);
}
}
}
"""


class WindowPlacing(NamedTuple):
    """Windows on the three spatial axes of the wide tensor: taps and number of windows along each axis."""

    taps: tuple[int, ...]
    places: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]


class ColumnLines(NamedTuple):
    """Columns of some images and `channels`: `part` window positions of each image, from `first` on.

    `line_step` and `image_step` are in elements: to the next line, and to the next image on a line.
    """

    images: int
    channels: int
    first: int
    part: int
    line_step: int
    image_step: int


def columns_are_addressable(windows: WindowPlacing, wide: TensorLayout) -> bool:
    """Return whether 64 bits hold all offsets."""
    return are_addressable(list(zip(_reaches(windows, wide), wide.steps, strict=True)))


def columns_are_wide(windows: WindowPlacing, wide: TensorLayout) -> bool:
    """Return whether 32 bits are too few to count window positions, elements and lines."""
    images, channels = wide.shape[:2]
    taps = math.prod(windows.taps)
    elements = (math.prod(wide.shape[2:]), math.prod(windows.places))
    return is_wide(*_reaches(windows, wide), channels * taps, *(images * n for n in elements))


def _reaches(windows: WindowPlacing, wide: TensorLayout) -> list[int]:
    """Return an upper bound, for each axis of the wide tensor, of how far indices go from 0, including padding."""
    axes = zip(*windows, wide.shape[2:], strict=True)
    spatial = [taps * dilation + places * stride + padding + n for taps, places, stride, padding, dilation, n in axes]
    return [*wide.shape[:2], *spatial]


def lay_columns(
    windows: WindowPlacing, wide: TensorLayout, lines: ColumnLines, x: CardPlace, to: CardPlace
) -> LaunchPhase:
    """Write columns to `to`, from the wide tensor whose first image and channel are at `x`; zeros beyond its edges."""
    items, rows = lines.images * lines.part, math.prod(windows.taps[:2])
    splits = max(1, min(rows, _BUSY // max(1, items * lines.channels)))
    head: tuple[CardEntry, ...] = (x, to, items, lines.first, lines.part, lines.channels * splits, splits)
    sizes = (lines.line_step, lines.image_step, *windows.places, *windows.taps, *wide.shape[2:])
    table = (*head, *sizes, *windows.stride, *windows.padding, *windows.dilation, *wide.steps)
    return launch_lines("lay_columns", lines.channels * splits, items, COLUMN_ENTRIES, *table)


def gather_columns(
    windows: WindowPlacing, wide: TensorLayout, lines: ColumnLines, columns: CardPlace, y: CardPlace
) -> LaunchPhase:
    """Gather the wide tensor at `y` from the columns of all positions, which are in the dtype of computation."""
    items, part = lines.images * math.prod(wide.shape[2:]), math.prod(wide.shape[2:])
    # An element at x is reached by tap t if stride divides x - t · dilation. So taps that reach it are stride / gcd
    # apart, and their windows dilation / gcd.
    gcds = [math.gcd(s, d) for s, d in zip(windows.stride, windows.dilation, strict=True)]
    tap_steps = (s // c for s, c in zip(windows.stride, gcds, strict=True))
    position_steps = (d // c for d, c in zip(windows.dilation, gcds, strict=True))
    head: tuple[CardEntry, ...] = (columns, y, items, part, lines.channels, lines.line_step, lines.image_step)
    sizes = (*wide.shape[3:], *windows.places, *windows.taps)
    placing = (*windows.stride, *windows.padding, *windows.dilation, *tap_steps, *position_steps)
    return launch_lines("gather_columns", lines.channels, items, COLUMN_ENTRIES, *head, *sizes, *placing, *wide.steps)
