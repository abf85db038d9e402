"""The `fft` extension of the standard, with NumPy's `fft2` and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, NoReturn

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording import missing
from gradserve_client.recording.elementwise import conj
from gradserve_client.recording.emitting import (
    complex_dtype,
    constant,
    dtype_of,
    emit,
    lift,
    normalize_axes,
    real_dtype,
)
from gradserve_client.recording.lines import locates_errors
from gradserve_client.recording.manipulation import roll
from gradserve_client.recording.recorder import DType, Traced

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

Norm = Literal["backward", "ortho", "forward"]
Sizes = Sequence[int] | None
#: the norm with which the inverse transform has the same scaling
_INVERSE_NORM: Final[dict[Norm, Norm]] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _transform(op: str, x: Traced, sizes: Sizes, axes: Sequence[int] | None, norm: Norm | None) -> Traced:
    """Append a transform over axes, with the given number of points on each axis, or −1 for the extent."""
    x = lift(x)
    if sizes is not None and axes is None:
        axes = range(-len(sizes), 0)
    along = normalize_axes(axes, x.ndim)
    if not along:
        raise InputError(f"a transform needs at least one axis, but there is none for {x.type_name}")
    if sizes is not None and len(sizes) != len(along):
        raise InputError(f"{len(sizes)} sizes do not match the {len(along)} axes of the transform")
    if norm not in (None, *_INVERSE_NORM):
        raise InputError(f"norm must be backward, ortho or forward, not {norm!r}")
    points = _point_counts(op, x, along, sizes)
    shape = [*x.shape]
    for axis, size in zip(along, points, strict=True):
        shape[axis] = size
    if op == "rfft":
        shape[along[-1]] = points[-1] // 2 + 1
    return emit(op, [x], shape, _dtype(op, x), axes=along, sizes=points, norm=norm)


def _point_counts(op: str, x: Traced, axes: Sequence[int], sizes: Sizes) -> list[int]:
    """Return the number of points on each axis. Raises InputError if there are none."""
    extents = [x.shape[axis] for axis in axes]
    if op == "irfft":
        extents[-1] = 2 * (extents[-1] - 1)
    points = [
        extent if requested in (None, -1) else int(requested)
        for extent, requested in zip(extents, sizes or extents, strict=True)
    ]
    if min(points) < 1:
        raise InputError(f"a transform needs points, but {x.type_name} would have {points} on the axes {[*axes]}")
    return points


def _dtype(op: str, x: Traced) -> DType:
    """Return the dtype of the result, as in NumPy. Raises InputError for `rfft` of complex numbers."""
    if op == "rfft" and x.dtype.kind == "c":
        raise InputError(
            f"half a spectrum is enough only for real arrays, but {x.type_name} is complex: use fft or fftn"
        )
    if op != "irfft":
        return complex_dtype(x.dtype)
    return x.dtype if x.dtype.name == "float16" else real_dtype(complex_dtype(x.dtype))


def _along_axis(name: str, doc: str) -> Callable[..., Traced]:
    """Create a transform along one axis."""

    def function(x: Traced, /, *, n: int | None = None, axis: int = -1, norm: Norm | None = None) -> Traced:
        return _transform(name, x, None if n is None else [n], [axis], norm)

    return _named(function, name, doc)


def _along_axes(name: str, op: str, doc: str, default: tuple[int, ...] | None) -> Callable[..., Traced]:
    """Create a transform along several axes: the given default, or the last ones if only sizes are passed."""

    def function(
        x: Traced, /, *, s: Sizes = None, axes: Sequence[int] | None = default, norm: Norm | None = None
    ) -> Traced:
        return _transform(op, x, s, axes, norm)

    return _named(function, name, doc)


def _named(function: Callable[..., Traced], name: str, doc: str) -> Callable[..., Traced]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return locates_errors(function)


fft = _along_axis(
    "fft", "Compute the discrete Fourier transform along an axis, of n points: truncated, or padded with zeros."
)
ifft = _along_axis("ifft", "Compute the inverse of `fft`.")
rfft = _along_axis("rfft", "Compute the n // 2 + 1 non-redundant entries of the spectrum of a real array.")
irfft = _along_axis(
    "irfft", "Compute the inverse of `rfft`: a real array of n points, by default 2 (m - 1) for m entries."
)
fft2 = _along_axes("fft2", "fft", "Compute `fft` along two axes, by default the last two.", (-2, -1))
ifft2 = _along_axes("ifft2", "ifft", "Compute the inverse of `fft2`.", (-2, -1))
rfft2 = _along_axes(
    "rfft2", "rfft", "Compute `rfft` along two axes; the last of them has half of the spectrum.", (-2, -1)
)
irfft2 = _along_axes("irfft2", "irfft", "Compute the inverse of `rfft2`.", (-2, -1))
fftn = _along_axes("fftn", "fft", "Compute `fft` along several axes, by default all.", None)
ifftn = _along_axes("ifftn", "ifft", "Compute the inverse of `fftn`.", None)
rfftn = _along_axes(
    "rfftn", "rfft", "Compute `rfft` along several axes; the last of them has half of the spectrum.", None
)
irfftn = _along_axes("irfftn", "irfft", "Compute the inverse of `rfftn`.", None)


@locates_errors
def hfft(x: Traced, /, *, n: int | None = None, axis: int = -1, norm: Norm | None = None) -> Traced:
    """Compute the real spectrum, of n points, of an array with Hermitian symmetry, given its first half."""
    return _transform("irfft", conj(x), None if n is None else [n], [axis], _INVERSE_NORM[norm or "backward"])


@locates_errors
def ihfft(x: Traced, /, *, n: int | None = None, axis: int = -1, norm: Norm | None = None) -> Traced:
    """Compute the inverse of `hfft`."""
    return conj(_transform("rfft", x, None if n is None else [n], [axis], _INVERSE_NORM[norm or "backward"]))


def _frequencies(values: object, dtype: object) -> Traced:
    return constant(np.asarray(values, np.float64 if dtype is None else dtype_of(dtype)))


@locates_errors
def fftfreq(n: int, /, *, d: float = 1.0, dtype: object = None, device: object = None) -> Traced:
    """Return the frequencies, in cycles per unit of d, of the entries of `fft` of n points with spacing d."""
    return _frequencies(np.fft.fftfreq(n, d), dtype)


@locates_errors
def rfftfreq(n: int, /, *, d: float = 1.0, dtype: object = None, device: object = None) -> Traced:
    """Return the frequencies, in cycles per unit of d, of the entries of `rfft` of n points with spacing d."""
    return _frequencies(np.fft.rfftfreq(n, d), dtype)


def _shift(x: Traced, axes: int | Sequence[int] | None, sign: int) -> Traced:
    """Roll each axis by half of its extent, rounded down, in the direction of `sign`."""
    along = normalize_axes(axes, x.ndim)
    shifts = tuple(sign * (x.shape[axis] // 2) for axis in along)
    return roll(x, shifts, axis=tuple(along)) if along else x


@locates_errors
def fftshift(x: Traced, /, *, axes: int | Sequence[int] | None = None) -> Traced:
    """Move frequency 0 to the middle of axes, by default of all."""
    return _shift(x, axes, 1)


@locates_errors
def ifftshift(x: Traced, /, *, axes: int | Sequence[int] | None = None) -> Traced:
    """Compute the inverse of `fftshift`."""
    return _shift(x, axes, -1)


def __getattr__(name: str) -> NoReturn:
    missing.refuse(name, f"fft.{name}", {})
