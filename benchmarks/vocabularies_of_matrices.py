"""Spectra, decompositions and rows by their indices in the peers' words: parts of their vocabularies."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

Words = dict[str, Callable[..., Any]]
_ELEMENTWISE: Final = ("conj", "sin", "abs", "square", "matmul", "sum", "mean")


def torch_words() -> Words:
    """PyTorch's."""
    import torch  # noqa: PLC0415 - a peer, where installed

    def stft(x: Any, window: Any, stride: Any) -> Any:
        points = window.shape[0]
        return torch.stft(x, points, stride[0], window=window, center=False, return_complex=True)

    decompositions = {
        "eigh": torch.linalg.eigh,
        "svd": lambda x: torch.linalg.svd(x, full_matrices=False),
        "qr": torch.linalg.qr,
    }
    return {
        "conj": torch.conj,
        "einsum": lambda *operands, equation: torch.einsum(equation, *operands),
        "rfft": lambda x, axes: torch.fft.rfft(x, dim=axes[0]),
        "irfft": lambda x, axes, sizes: torch.fft.irfft(x, sizes[0], axes[0]),
        "stft": stft,
        "matrix_exp": torch.linalg.matrix_exp,
        "index": lambda x, rows: x[rows],
        "index_add": lambda x, rows, updates: x.index_add(0, rows, updates),
        "several": lambda op, x, count: tuple(decompositions[op](x))[:count],
    }


def jax_words() -> Words:
    """JAX's."""
    import jax  # noqa: PLC0415 - a peer, where installed
    import jax.numpy as jnp  # noqa: PLC0415

    return _numpy_like(jnp) | {
        "conj": jnp.conj,
        "matrix_exp": jax.scipy.linalg.expm,
        "index_add": lambda x, rows, updates: x.at[rows].add(updates),
    }


def scipy_ops() -> SimpleNamespace:
    """NumPy's and SciPy's: the latter's transforms, which keep float32, and its exponential."""
    import numpy as np  # noqa: PLC0415 - beside the other sides
    import scipy.fft  # noqa: PLC0415 - loaded where it is asked
    import scipy.linalg  # noqa: PLC0415 - as above

    def index_add(x: Any, rows: Any, updates: Any) -> Any:
        y = x.copy()
        np.add.at(y, rows, updates)
        return y

    own = {name: getattr(np, name) for name in _ELEMENTWISE}
    transforms = _numpy_like(np, scipy.fft)
    return SimpleNamespace(**own, **transforms, slice=_sliced, index_add=index_add, matrix_exp=scipy.linalg.expm)


def _numpy_like(np: Any, fft: Any = None) -> Words:
    """What a module that looks like NumPy has, and one that looks like its `fft`."""
    fft = np.fft if fft is None else fft
    decompositions = {
        "eigh": np.linalg.eigh,
        "svd": lambda x: np.linalg.svd(x, full_matrices=False),
        "qr": np.linalg.qr,
    }

    def stft(x: Any, window: Any, stride: Any) -> Any:
        points = window.shape[0]
        starts = np.arange(0, x.shape[-1] - points + 1, stride[0])
        return fft.rfft(x[..., starts[:, None] + np.arange(points)] * window)

    return {
        "einsum": lambda *operands, equation: np.einsum(equation, *operands, optimize=True),
        "rfft": lambda x, axes: fft.rfft(x, axis=axes[0]),
        "irfft": lambda x, axes, sizes: fft.irfft(x, sizes[0], axes[0]),
        "stft": stft,
        "index": lambda x, rows: x[rows],
        "several": lambda op, x, count: tuple(decompositions[op](x))[:count],
    }


def _sliced(x: Any, starts: Any, stops: Any) -> Any:
    return x[tuple(slice(start, stop) for start, stop in zip(starts, stops, strict=True))]
