"""The extension `fft` of the standard; `fft2` and its like are NumPy's beside it."""

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
#: the same scaling of a transform the other way round
_OTHER: Final[dict[Norm, Norm]] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _transformed(op: str, x: Traced, sizes: Sizes, axes: Sequence[int] | None, norm: Norm | None) -> Traced:
    """The op over axes, with so many points on each; −1 points are those that there are."""
    x = lift(x)
    if sizes is not None and axes is None:
        axes = range(-len(sizes), 0)
    along = normalize_axes(axes, x.ndim)
    if not along:
        raise InputError(f"a transform is over an axis, and {x.type_name} has none to go over")
    if sizes is not None and len(sizes) != len(along):
        raise InputError(f"{len(sizes)} sizes are not for the {len(along)} axes of the transform")
    if norm not in (None, *_OTHER):
        raise InputError(f"norm is backward, ortho or forward, and not {norm!r}")
    points = _points(op, x, along, sizes)
    shape = [*x.shape]
    for axis, size in zip(along, points, strict=True):
        shape[axis] = size
    if op == "rfft":
        shape[along[-1]] = points[-1] // 2 + 1
    return emit(op, [x], shape, _dtype(op, x), axes=along, sizes=points, norm=norm)


def _points(op: str, x: Traced, axes: Sequence[int], sizes: Sizes) -> list[int]:
    """How many there are on each axis. Raises InputError where there is none."""
    own = [x.shape[axis] for axis in axes]
    if op == "irfft":
        own[-1] = 2 * (own[-1] - 1)
    points = [one if wanted in (None, -1) else int(wanted) for one, wanted in zip(own, sizes or own, strict=True)]
    if min(points) < 1:
        raise InputError(
            f"a transform is of points, and of {x.type_name} there would be {points} on the axes {[*axes]}"
        )
    return points


def _dtype(op: str, x: Traced) -> DType:
    """The dtype of the result, as NumPy's. Raises InputError for the half spectrum of complex numbers."""
    if op == "rfft" and x.dtype.kind == "c":
        raise InputError(f"half of a spectrum says all of a real array, and {x.type_name} is complex: take fft or fftn")
    if op != "irfft":
        return complex_dtype(x.dtype)
    return x.dtype if x.dtype.name == "float16" else real_dtype(complex_dtype(x.dtype))


def _one(name: str, says: str) -> Callable[..., Traced]:
    """A transform along one axis."""

    def function(x: Traced, /, *, n: int | None = None, axis: int = -1, norm: Norm | None = None) -> Traced:
        return _transformed(name, x, None if n is None else [n], [axis], norm)

    return _named(function, name, says)


def _several(name: str, op: str, says: str, default: tuple[int, ...] | None) -> Callable[..., Traced]:
    """A transform along axes: by default the last two, or all; the last ones where only sizes are given."""

    def function(
        x: Traced, /, *, s: Sizes = None, axes: Sequence[int] | None = default, norm: Norm | None = None
    ) -> Traced:
        return _transformed(op, x, s, axes, norm)

    return _named(function, name, says)


def _named(function: Callable[..., Traced], name: str, says: str) -> Callable[..., Traced]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = says
    return locates_errors(function)


fft = _one("fft", "The discrete Fourier transform along an axis, with n points: cut, or padded with zeros.")
ifft = _one("ifft", "The inverse of `fft`.")
rfft = _one("rfft", "The n // 2 + 1 entries of the spectrum of a real array that say all.")
irfft = _one("irfft", "The real array of n points that has this half of a spectrum; by default 2 (m - 1).")
fft2 = _several("fft2", "fft", "`fft` along two axes, by default the last.", (-2, -1))
ifft2 = _several("ifft2", "ifft", "The inverse of `fft2`.", (-2, -1))
rfft2 = _several("rfft2", "rfft", "`rfft` along two axes, halved along the last.", (-2, -1))
irfft2 = _several("irfft2", "irfft", "The inverse of `rfft2`.", (-2, -1))
fftn = _several("fftn", "fft", "`fft` along axes, by default all.", None)
ifftn = _several("ifftn", "ifft", "The inverse of `fftn`.", None)
rfftn = _several("rfftn", "rfft", "`rfft` along axes, halved along the last of them.", None)
irfftn = _several("irfftn", "irfft", "The inverse of `rfftn`.", None)


@locates_errors
def hfft(x: Traced, /, *, n: int | None = None, axis: int = -1, norm: Norm | None = None) -> Traced:
    """The real spectrum, of n points, of an array of which this is one half, and the conjugates the other."""
    return _transformed("irfft", conj(x), None if n is None else [n], [axis], _OTHER[norm or "backward"])


@locates_errors
def ihfft(x: Traced, /, *, n: int | None = None, axis: int = -1, norm: Norm | None = None) -> Traced:
    """The inverse of `hfft`."""
    return conj(_transformed("rfft", x, None if n is None else [n], [axis], _OTHER[norm or "backward"]))


def _frequencies(found: object, dtype: object) -> Traced:
    return constant(np.asarray(found, np.float64 if dtype is None else dtype_of(dtype)))


@locates_errors
def fftfreq(n: int, /, *, d: float = 1.0, dtype: object = None, device: object = None) -> Traced:
    """The frequencies of the entries of `fft` of n points that are d apart."""
    return _frequencies(np.fft.fftfreq(n, d), dtype)


@locates_errors
def rfftfreq(n: int, /, *, d: float = 1.0, dtype: object = None, device: object = None) -> Traced:
    """The frequencies of the entries of `rfft` of n points that are d apart."""
    return _frequencies(np.fft.rfftfreq(n, d), dtype)


def _shifted(x: Traced, axes: int | Sequence[int] | None, sign: int) -> Traced:
    """Each axis moved by half of its extent, which is the smaller half where `sign` is 1."""
    along = normalize_axes(axes, x.ndim)
    shifts = tuple(sign * (x.shape[axis] // 2) for axis in along)
    return roll(x, shifts, axis=tuple(along)) if along else x


@locates_errors
def fftshift(x: Traced, /, *, axes: int | Sequence[int] | None = None) -> Traced:
    """With frequency 0 in the middle of axes, by default of all."""
    return _shifted(x, axes, 1)


@locates_errors
def ifftshift(x: Traced, /, *, axes: int | Sequence[int] | None = None) -> Traced:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, -1)


def __getattr__(name: str) -> NoReturn:
    missing.refuse(name, f"fft.{name}", {})
