"""Short-time Fourier transforms against NumPy, gradients against adjoint matrices, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.ops.run import Array, error, grads, run


def stft_by_numpy(x: Array, window: Array, stride: int, points: int) -> Array:
    """The reference, by NumPy."""
    frames = np.lib.stride_tricks.sliding_window_view(x, len(window), axis=-1)[..., ::stride, :]
    result: Array = np.fft.rfft(frames * window, points)
    return result


PLACED = [(7, 4, 2, 4), (6, 3, 3, 5), (5, 5, 1, 2), (6, 2, 1, 1), (8, 3, 4, 3), (4, 1, 1, 1)]


@pytest.mark.parametrize(("extent", "width", "stride", "points"), PLACED)
def test_frames_and_gradients(extent: int, width: int, stride: int, points: int) -> None:
    rng = np.random.default_rng(0)
    x, window = rng.normal(size=extent), rng.normal(size=width)
    attrs: dict[str, Any] = {"stride": [stride]} if points == width else {"stride": [stride], "sizes": [points]}
    reference = stft_by_numpy(x, window, stride, points)
    g = rng.normal(size=reference.shape) + 1j * rng.normal(size=reference.shape)
    actual, gradients = grads("stft", x, window, cotangent=g, **attrs)
    np.testing.assert_allclose(actual, reference, 1e-13, 1e-13)
    grad_x = [np.vdot(stft_by_numpy(unit, window, stride, points), g).real for unit in np.eye(extent)]
    grad_window = [np.vdot(stft_by_numpy(x, unit, stride, points), g).real for unit in np.eye(width)]
    for gradient, expected in zip(gradients, (grad_x, grad_window), strict=True):
        np.testing.assert_allclose(gradient, expected, 1e-13, 1e-13)


def test_leading_axes_are_batched() -> None:
    x, window = np.random.default_rng(1).normal(size=(2, 3, 6)), np.array([1.0, 2.0, 0.5])
    np.testing.assert_allclose(run("stft", x, window, stride=[2]), stft_by_numpy(x, window, 2, 3), 1e-13, 1e-13)


@pytest.mark.parametrize(
    ("x", "window", "operand"),
    [((4,), (2, 1), 1), ((4,), (0,), 1), ((4,), (), 1), ((4,), (5,), 0), ((), (1,), 0), ((2, 0), (1,), 0)],
)
def test_mismatched_shapes_are_refused(x: tuple[int, ...], window: tuple[int, ...], operand: int) -> None:
    refused = error("stft", np.zeros(x), np.zeros(window), stride=[1])
    assert (refused.code, refused.operand) == ("shape_mismatch", operand)


@pytest.mark.parametrize("attrs", [{"stride": [1, 1]}, {"stride": [0]}, {"stride": [1], "sizes": [2, 2]}, {}])
def test_invalid_attributes_are_refused(attrs: dict[str, Any]) -> None:
    assert error("stft", np.zeros(4), np.zeros(2), **attrs).code == "bad_attribute"
