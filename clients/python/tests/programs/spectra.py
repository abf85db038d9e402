"""Programs with transforms and complex numbers."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import torch

from clients.python.tests.programs.program import Arrays, Program, complex_normal, normal

_POINTS, _MODES = 16, 5
_TARGET = normal(20, 2, 3, _POINTS)


class FourierLayer(Program):
    """A Fourier operator layer: complex weights for the lowest modes, plus a product over channels."""

    leaves: ClassVar[Arrays] = {
        "x": normal(21, 2, 3, _POINTS),
        "modes": 0.4 * complex_normal(22, _MODES, 3, 3),
        "mixed": 0.4 * normal(23, 3, 3),
        "bias": 0.1 * normal(24, 3, 1),
    }

    @staticmethod
    def graph(g: Any, x: Any, modes: Any, mixed: Any, bias: Any) -> tuple[Any, ...]:
        low = x.rfft().slice(stops=[2, 3, _MODES])
        spectrum = g.einsum(low, modes, equation="bim,mio->bom")
        y = spectrum.irfft(axes=[-1], sizes=[_POINTS]) + g.einsum(x, mixed, equation="bin,io->bon") + bias
        y = y.gelu()
        return (y - g.constant(_TARGET)).square().mean(), y, spectrum

    @staticmethod
    def by_torch(x: Any, modes: Any, mixed: Any, bias: Any) -> tuple[Any, ...]:
        low = torch.fft.rfft(x)[..., :_MODES]
        spectrum = torch.einsum("bim,mio->bom", low, modes)
        y = torch.fft.irfft(spectrum, n=_POINTS) + torch.einsum("bin,io->bon", x, mixed) + bias
        y = torch.nn.functional.gelu(y)
        return (y - torch.from_numpy(_TARGET)).square().mean(), y, spectrum

    @staticmethod
    def by_jax(x: Any, modes: Any, mixed: Any, bias: Any) -> tuple[Any, ...]:
        low = jnp.fft.rfft(x)[..., :_MODES]
        spectrum = jnp.einsum("bim,mio->bom", low, modes)
        y = jnp.fft.irfft(spectrum, n=_POINTS) + jnp.einsum("bin,io->bon", x, mixed) + bias
        y = jax.nn.gelu(y, approximate=False)
        return jnp.square(y - _TARGET).mean(), y, spectrum


_SECONDS = np.arange(256) / 256
_SOUND = np.sin(2 * np.pi * (21 * _SECONDS + 9 * _SECONDS**2)) + 0.05 * normal(25, 256)
_WINDOWS = {width: np.hanning(width + 1)[:-1] for width in (32, 64)}


class StftLoss(Program):
    """Three fading sounds against a recording: absolute and relative errors of spectrograms of two widths."""

    leaves: ClassVar[Arrays] = {
        "pitches": np.array([20.0, 33.0, 47.0]),
        "sizes": np.array([0.9, 0.5, 0.3]),
        "fading": np.array([1.5, 0.7, 2.2]),
    }

    @staticmethod
    def graph(g: Any, pitches: Any, sizes: Any, fading: Any) -> tuple[Any, ...]:
        t, loss = g.constant(_SECONDS[:, None]), g.constant(0.0)
        sound = (sizes * (-fading * t).exp() * (2 * np.pi * pitches * t).sin()).sum(axes=[1])
        for width, window in _WINDOWS.items():
            shown, recorded = (
                each.stft(g.constant(window), stride=[width // 4]).abs() for each in (sound, g.constant(_SOUND))
            )
            loss = loss + (shown - recorded).norm() / recorded.norm()
            loss = loss + ((shown + 1e-3).log() - (recorded + 1e-3).log()).abs().mean()
        return loss, sound, sound.stft(g.constant(_WINDOWS[64]), stride=[16]).transpose()

    @staticmethod
    def by_torch(pitches: Any, sizes: Any, fading: Any) -> tuple[Any, ...]:
        t, loss = torch.from_numpy(_SECONDS[:, None]), torch.zeros(())
        sound = (sizes * torch.exp(-fading * t) * torch.sin(2 * np.pi * pitches * t)).sum(1)
        for width, window in _WINDOWS.items():
            shown, recorded = (
                torch.stft(each, width, width // 4, window=torch.from_numpy(window), center=False, return_complex=True)
                for each in (sound, torch.from_numpy(_SOUND))
            )
            last, (shown, recorded) = shown, (shown.abs(), recorded.abs())
            loss = loss + torch.linalg.norm(shown - recorded) / torch.linalg.norm(recorded)
            loss = loss + ((shown + 1e-3).log() - (recorded + 1e-3).log()).abs().mean()
        return loss, sound, last

    @staticmethod
    def by_jax(pitches: Any, sizes: Any, fading: Any) -> tuple[Any, ...]:
        t, loss = _SECONDS[:, None], 0.0
        sound = (sizes * jnp.exp(-fading * t) * jnp.sin(2 * np.pi * pitches * t)).sum(1)
        for width, window in _WINDOWS.items():
            samples = np.arange(0, len(_SECONDS) - width + 1, width // 4)[:, None] + np.arange(width)
            shown, recorded = (jnp.fft.rfft(jnp.asarray(each)[samples] * window) for each in (sound, _SOUND))
            last, (shown, recorded) = shown.T, (jnp.abs(shown), jnp.abs(recorded))
            loss = loss + jnp.linalg.norm(shown - recorded) / jnp.linalg.norm(recorded)
            loss = loss + jnp.abs(jnp.log(shown + 1e-3) - jnp.log(recorded + 1e-3)).mean()
        return loss, sound, last


_SIDE = 12
_FREQUENCIES = np.fft.fftfreq(_SIDE, 1 / _SIDE)
_SQUARES = _FREQUENCIES[:, None] ** 2 + _FREQUENCIES[None, : _SIDE // 2 + 1] ** 2
_INVERSE = np.divide(1, _SQUARES, out=np.zeros_like(_SQUARES), where=_SQUARES > 0)
_GRID = np.stack(np.meshgrid(*[np.arange(_SIDE) * 2 * np.pi / _SIDE] * 2, indexing="ij"), -1)
_MEASURED = normal(26, _SIDE, _SIDE)


class SpectralPoisson(Program):
    """−Δu = f on a torus, with f from charges at learned places: the error of u, and its slope."""

    leaves: ClassVar[Arrays] = {
        "places": np.array([[1.1, 2.0], [4.2, 3.3], [2.9, 5.5]]),
        "charges": np.array([1.5, -0.8, 0.6]),
    }

    @staticmethod
    def graph(g: Any, places: Any, charges: Any) -> tuple[Any, ...]:
        offsets = g.constant(_GRID[:, :, None]) - places
        source = ((2 * (offsets.cos() - 1.0).sum(axes=[3])).exp() * charges).sum(axes=[2])
        spectrum = source.rfft(axes=[0, 1]) * g.constant(_INVERSE)
        u = spectrum.irfft(axes=[0, 1], sizes=[_SIDE, _SIDE])
        along = spectrum * g.constant(1j * _FREQUENCIES[:, None])
        slope = along.irfft(axes=[0, 1], sizes=[_SIDE, _SIDE])
        return (u - g.constant(_MEASURED)).square().mean() + slope.square().mean(), u, spectrum

    @staticmethod
    def by_torch(places: Any, charges: Any) -> tuple[Any, ...]:
        offsets = torch.from_numpy(_GRID[:, :, None]) - places
        source = (torch.exp(2 * (offsets.cos() - 1).sum(3)) * charges).sum(2)
        spectrum = torch.fft.rfft2(source) * torch.from_numpy(_INVERSE)
        u = torch.fft.irfft2(spectrum, s=(_SIDE, _SIDE))
        slope = torch.fft.irfft2(spectrum * torch.from_numpy(1j * _FREQUENCIES[:, None]), s=(_SIDE, _SIDE))
        return (u - torch.from_numpy(_MEASURED)).square().mean() + slope.square().mean(), u, spectrum

    @staticmethod
    def by_jax(places: Any, charges: Any) -> tuple[Any, ...]:
        offsets = _GRID[:, :, None] - places
        source = (jnp.exp(2 * (jnp.cos(offsets) - 1).sum(3)) * charges).sum(2)
        spectrum = jnp.fft.rfft2(source) * _INVERSE
        u = jnp.fft.irfft2(spectrum, s=(_SIDE, _SIDE))
        slope = jnp.fft.irfft2(spectrum * (1j * _FREQUENCIES[:, None]), s=(_SIDE, _SIDE))
        return jnp.square(u - _MEASURED).mean() + jnp.square(slope).mean(), u, spectrum


_QUBITS, _LAYERS = 3, 2
_STATES = 2**_QUBITS
_HERMITIAN = complex_normal(27, _STATES, _STATES)
_HERMITIAN = (_HERMITIAN + _HERMITIAN.conj().T) / 2
_BITS = np.arange(_STATES)[:, None] >> np.arange(_QUBITS)[::-1] & 1
#: −1 for each pair of neighbours that are both 1
_SIGNS = np.prod(1.0 - 2.0 * (_BITS[:, 1:] * _BITS[:, :-1]), 1)
_X, _Z = np.array([[0, 1], [1, 0]], complex), np.array([[1, 0], [0, -1]], complex)
_ON = {0: "ij,jbc->ibc", 1: "ij,ajc->aic", 2: "ij,abj->abi"}


class QuantumCircuit(Program):
    """The energy of three rotated and entangled qubits, from any state, which is normalised first."""

    leaves: ClassVar[Arrays] = {"state": complex_normal(28, _STATES), "angles": normal(29, _LAYERS, _QUBITS, 2)}

    @staticmethod
    def graph(g: Any, state: Any, angles: Any) -> tuple[Any, ...]:
        state = state / state.abs().square().sum().sqrt()
        for layer in range(_LAYERS):
            cube = state.reshape(shape=[2] * _QUBITS)
            for qubit in range(_QUBITS):
                for which, generator in enumerate((_X, _Z)):
                    half = 0.5 * angles.select(layer).select(qubit).select(which)
                    gate = half.cos() * g.constant(np.eye(2)) - half.sin() * g.constant(1j * generator)
                    cube = g.einsum(gate, cube, equation=_ON[qubit])
            state = cube.reshape(shape=[_STATES]) * g.constant(_SIGNS)
        energy = (state.conj() * (g.constant(_HERMITIAN) @ state)).sum().real()
        return energy, state

    @staticmethod
    def by_torch(state: Any, angles: Any) -> tuple[Any, ...]:
        state = state / state.abs().square().sum().sqrt()
        for layer in range(_LAYERS):
            cube = state.reshape([2] * _QUBITS)
            for qubit in range(_QUBITS):
                for which, generator in enumerate((_X, _Z)):
                    half = 0.5 * angles[layer, qubit, which]
                    gate = half.cos() * torch.eye(2) - half.sin() * torch.from_numpy(1j * generator)
                    cube = torch.einsum(_ON[qubit], gate, cube)
            state = cube.reshape(_STATES) * torch.from_numpy(_SIGNS)
        return (state.conj() * (torch.from_numpy(_HERMITIAN) @ state)).sum().real, state

    @staticmethod
    def by_jax(state: Any, angles: Any) -> tuple[Any, ...]:
        state = state / jnp.sqrt(jnp.square(jnp.abs(state)).sum())
        for layer in range(_LAYERS):
            cube = state.reshape([2] * _QUBITS)
            for qubit in range(_QUBITS):
                for which, generator in enumerate((_X, _Z)):
                    half = 0.5 * angles[layer, qubit, which]
                    gate = jnp.cos(half) * np.eye(2) - jnp.sin(half) * (1j * generator)
                    cube = jnp.einsum(_ON[qubit], gate, cube)
            state = cube.reshape(_STATES) * _SIGNS
        return (state.conj() * (_HERMITIAN @ state)).sum().real, state
