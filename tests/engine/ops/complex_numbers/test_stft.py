"""Fourier transforms of frames against NumPy's, their gradients against adjoint matrices, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.ops.run import Array, error, grads, run


def framed(x: Array, window: Array, stride: int, points: int) -> Array:
    """By NumPy."""
    frames = np.lib.stride_tricks.sliding_window_view(x, len(window), axis=-1)[..., ::stride, :]
    found: Array = np.fft.rfft(frames * window, points)
    return found


PLACED = [(7, 4, 2, 4), (6, 3, 3, 5), (5, 5, 1, 2), (6, 2, 1, 1), (8, 3, 4, 3), (4, 1, 1, 1)]


@pytest.mark.parametrize(("extent", "width", "stride", "points"), PLACED)
def test_frames_and_their_gradients(extent: int, width: int, stride: int, points: int) -> None:
    rng = np.random.default_rng(0)
    x, window = rng.normal(size=extent), rng.normal(size=width)
    attrs: dict[str, Any] = {"stride": [stride]} if points == width else {"stride": [stride], "sizes": [points]}
    wanted = framed(x, window, stride, points)
    g = rng.normal(size=wanted.shape) + 1j * rng.normal(size=wanted.shape)
    found, gradients = grads("stft", x, window, cotangent=g, **attrs)
    np.testing.assert_allclose(found, wanted, 1e-13, 1e-13)
    by_x = [np.vdot(framed(unit, window, stride, points), g).real for unit in np.eye(extent)]
    by_window = [np.vdot(framed(x, unit, stride, points), g).real for unit in np.eye(width)]
    for gradient, expected in zip(gradients, (by_x, by_window), strict=True):
        np.testing.assert_allclose(gradient, expected, 1e-13, 1e-13)


def test_axes_before_the_last_are_free() -> None:
    x, window = np.random.default_rng(1).normal(size=(2, 3, 6)), np.array([1.0, 2.0, 0.5])
    np.testing.assert_allclose(run("stft", x, window, stride=[2]), framed(x, window, 2, 3), 1e-13, 1e-13)


@pytest.mark.parametrize(
    ("x", "window", "operand"),
    [((4,), (2, 1), 1), ((4,), (0,), 1), ((4,), (), 1), ((4,), (5,), 0), ((), (1,), 0), ((2, 0), (1,), 0)],
)
def test_shapes_that_do_not_fit(x: tuple[int, ...], window: tuple[int, ...], operand: int) -> None:
    refused = error("stft", np.zeros(x), np.zeros(window), stride=[1])
    assert (refused.code, refused.operand) == ("shape_mismatch", operand)


@pytest.mark.parametrize("attrs", [{"stride": [1, 1]}, {"stride": [0]}, {"stride": [1], "sizes": [2, 2]}, {}])
def test_attributes_that_do_not_fit(attrs: dict[str, Any]) -> None:
    assert error("stft", np.zeros(4), np.zeros(2), **attrs).code == "bad_attribute"
