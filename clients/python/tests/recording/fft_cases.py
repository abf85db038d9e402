"""Calls of every function of `fft`, which give the same with NumPy."""

from __future__ import annotations

from typing import Final

import numpy as np

from clients.python.tests.recording.complex_cases import SINGLE, Z
from clients.python.tests.recording.namespace_cases import RNG, WHOLE, Case, X

BOX = RNG.standard_normal((2, 4, 5))
WAVES = BOX + 1j * RNG.standard_normal((2, 4, 5))
NARROW = X.astype(np.float32)
ALONG: Final = ({}, {"axis": 0}, {"n": 5}, {"n": 2, "norm": "ortho"}, {"axis": -2, "norm": "forward"})
OVER: Final = ({}, {"axes": (0, 2)}, {"s": (3, 6), "axes": (2, 1)}, {"s": (-1, 4), "axes": (0, 1), "norm": "ortho"})


def _along(names: str, *arrays: np.ndarray) -> list[Case]:
    return [
        Case(name, lambda module, x, name=name, options=options: getattr(module, name)(x, **options), (array,))
        for name in names.split()
        for array in arrays
        for options in ALONG
    ]


def _over(names: str, array: np.ndarray) -> list[Case]:
    return [
        Case(name, lambda module, x, name=name, options=options: getattr(module, name)(x, **options), (array,))
        for name in names.split()
        for options in OVER
    ]


CASES: Final = [
    *_along("fft ifft", Z, X, SINGLE, NARROW, WHOLE),
    *_along("rfft ihfft", X, NARROW, WHOLE),
    *_along("irfft hfft", Z, SINGLE, X, NARROW),
    *_over("fft2 ifft2 fftn ifftn", WAVES),
    *_over("irfft2 irfftn", WAVES),
    *_over("rfft2 rfftn", BOX),
    Case("fftfreq", lambda module: module.fftfreq(7, d=0.5), ()),
    Case("rfftfreq", lambda module: module.rfftfreq(6, d=2.0), ()),
    *[
        Case(name, lambda module, x, name=name, axes=axes: getattr(module, name)(x, axes=axes), (WAVES,))
        for name in ("fftshift", "ifftshift")
        for axes in (None, 2, (0, 2))
    ],
]
