"""Argument checks of convolutions and pooling, and their error messages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine.ir.errors import BadAttribute, EngineError, ShapeMismatch
from engine.ir.tensor_type import TensorType
from engine.ops.conv.windows import (
    Windows,
    check_extents,
    check_fits,
    check_groups,
    check_ranks,
    check_spatial,
    check_spread,
)

PLANE = TensorType((1, 2, 5, 5), np.dtype("float64"))
LINE = TensorType((1, 2, 5), np.dtype("float64"))
THREE = Windows((3, 3), (2, 2), (0, 0), (1, 1))

REFUSED: list[tuple[Callable[[], None], type[EngineError], str]] = [
    (lambda: check_spatial("stride", (1, 2, 3)), BadAttribute,
     r"attribute stride must hold one number for each of the 2 spatial axes, but is \[1, 2, 3\]"),
    (lambda: check_spatial("stride", (), 1), BadAttribute, r"one number for the spatial axis"),
    (lambda: check_ranks(LINE, PLANE, 2, "features, channels"), ShapeMismatch,
     r"operand 0 \(x\) must have rank 4, \[n, channels, h, w\], but has shape \[1, 2, 5\]"),
    (lambda: check_ranks(PLANE, LINE, 2, "features, channels"), ShapeMismatch,
     r"operand 1 \(kernel\) must have rank 4, \[features, channels, kh, kw\]"),
    (lambda: check_groups(3, 4, "channels"), BadAttribute,
     r"attribute groups must be a divisor of 4, the number of channels, but is 3"),
    (lambda: check_fits(THREE, (2, 5)), ShapeMismatch,
     r"the windows span \[3, 3\], more than the extents \[2, 5\] of operand 0 \(x\) with its padding"),
    (lambda: check_fits(Windows((0, 3), (1, 1), (0, 0), (1, 1)), (5, 5)), ShapeMismatch, r"must have taps"),
    (lambda: check_spread(THREE, (0, 2), (0, 0)), ShapeMismatch, r"extents of at least 1, but they are \[0, 2\]"),
    (lambda: check_spread(THREE, (2, 2), (0, 2)), BadAttribute, r"output_padding must be below \[2, 2\]"),
    (lambda: check_extents((3, -1), (2, 2)), BadAttribute, r"is larger than the result"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "error", "said"), REFUSED, ids=range(len(REFUSED)))
def test_invalid_arguments_are_refused(check: Callable[[], None], error: type[EngineError], said: str) -> None:
    with pytest.raises(error, match=said):
        check()


def test_valid_arguments_are_accepted() -> None:
    check_spatial("stride", (1, 2))
    check_spatial("stride", (1,), 1)
    check_ranks(PLANE, PLANE, 2, "features, channels")
    check_groups(2, 4, "channels")
    check_fits(THREE, (3, 3))
    check_spread(THREE, (1, 1), (1, 1))
    check_extents((0, 1), (2, 2))
