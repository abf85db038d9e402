"""Complex numbers and spectra: a Fourier operator, a loss of spectrograms, an elementwise chain, a product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from benchmarks.workload import Array, Function, Maker, Ways, Workload, both_ways, normal

EXAMPLES, CHANNELS, POINTS = 16, 64, 1_024
#: frequencies that a layer keeps, as in “Fourier Neural Operator for Parametric PDEs” (Li et al. 2020)
MODES: Final = 16
SIGNALS, SAMPLES, WINDOW, HOP = 8, 16_384, 1_024, 256
NUMBERS: Final = 1_000_000
ROUNDS: Final = 4
SIDE: Final = 256


def layer(ops: Any, weight: Any, x: Any) -> Any:
    """To frequencies, where each of the lowest has a matrix of its own, and back."""
    low = ops.slice(ops.rfft(x, axes=[-1]), starts=[0, 0, 0], stops=[EXAMPLES, CHANNELS, MODES])
    mixed = ops.einsum(low, weight, equation="bim,iom->bom")
    return ops.irfft(mixed, axes=[-1], sizes=[POINTS])


def layer_loss(ops: Any, weight: Any, x: Any) -> Any:
    """By the weight and by what comes in, as inside a network."""
    return ops.sum(ops.square(layer(ops, weight, x)))


def spectrogram_loss(ops: Any, x: Any, target: Any, window: Any) -> Any:
    """How far magnitudes are apart."""
    ours, theirs = (ops.abs(ops.stft(each, window, stride=[HOP])) for each in (x, target))
    return ops.mean(ops.square(ours - theirs))


def chain(ops: Any, z: Any, w: Any) -> Any:
    """Twenty ops."""
    y = z
    for _ in range(ROUNDS):
        y = ops.conj(ops.sin((y * w + z) * 0.5))
    return y


def chain_loss(ops: Any, z: Any, w: Any) -> Any:
    """The sum of squared magnitudes."""
    return ops.sum(ops.square(ops.abs(chain(ops, z, w))))


def product(ops: Any, a: Any, b: Any) -> Any:
    """Of two matrices."""
    return ops.matmul(a, b)


def product_loss(ops: Any, a: Any, b: Any) -> Any:
    """The sum of squared magnitudes."""
    return ops.sum(ops.square(ops.abs(product(ops, a, b))))


def complex_normal(seed: int, *shape: int, scale: float = 1.0) -> Array:
    """complex64, both parts normally distributed."""
    return normal(seed, *shape, scale=scale) + np.complex64(1j) * normal(seed + 1000, *shape, scale=scale)


def _of_layer(function: Function) -> Workload:
    title = f"Fourier layer, {EXAMPLES} × {CHANNELS} × {POINTS:,}, {MODES} modes, float32"
    weight = complex_normal(1, CHANNELS, CHANNELS, MODES, scale=0.1)
    return _workload("fourier-layer", title, function, [weight, normal(2, EXAMPLES, CHANNELS, POINTS)])


def _of_spectrograms(function: Function) -> Workload:
    title = f"STFT loss, {SIGNALS} × {SAMPLES:,}, windows of {WINDOW:,} every {HOP}, float32"
    window = np.hanning(WINDOW).astype("float32")
    data = [normal(2, SIGNALS, SAMPLES), window]
    return _workload("stft-loss", title, function, [normal(1, SIGNALS, SAMPLES)], data)


def _of_chain(function: Function) -> Workload:
    title = f"twenty elementwise ops on {NUMBERS:,} of complex64"
    numbers = [complex_normal(i, NUMBERS, scale=0.3) for i in range(2)]
    return _workload("complex-chain", title, function, numbers)


def _of_product(function: Function) -> Workload:
    matrices = [complex_normal(i, SIDE, SIDE) for i in range(2)]
    return _workload("complex-product", f"product {SIDE}³ of complex64", function, matrices)


def _workload(
    name: str, title: str, function: Function, parameters: list[Array], data: Sequence[Array] = ()
) -> Workload:
    return Workload(name, title, function, parameters, list(data), sides=("gradserve", "torch", "jax", "scipy"))


_ROWS: Final[dict[str, Ways]] = {
    "fourier-layer": (_of_layer, layer_loss, layer),
    "stft-loss": (_of_spectrograms, spectrogram_loss, spectrogram_loss),
    "complex-chain": (_of_chain, chain_loss, chain),
    "complex-product": (_of_product, product_loss, product),
}
SPECTRA: Final[dict[str, Maker]] = both_ways(_ROWS)
