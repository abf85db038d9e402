"""Models of PyTorch: a convolution over a series, and attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from clients.gallery.example import Evaluate, ImportedExample
from gradserve_client.importing import Imported
from gradserve_client.tensors import Array
from gradserve_client.torch import import_module

_SOURCE: Final = f"PyTorch {torch.__version__.partition('+')[0]}"
_TAGS: Final = ("machine learning", "imported", "PyTorch")
_RNG: Final = np.random.default_rng(25)


class _Attention(nn.Module):  # type: ignore[misc] # PyTorch is not there where types are checked
    """Self-attention of two heads, and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.norm = nn.LayerNorm(4)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Words of the shape [1, n, 4]."""
        found, _ = self.attention(words, words, words, need_weights=False)
        normed: torch.Tensor = self.norm(words + found)
        return normed


def _drawn(*shape: int) -> Array:
    """Numbers of two digits."""
    return _RNG.normal(0, 0.5, shape).round(2)


def _loading(net: nn.Module, inputs: Mapping[str, Array]) -> Callable[[], tuple[Imported, Evaluate]]:
    """A module with weights of two digits."""
    net = net.double().eval()
    for parameter in net.parameters():
        parameter.data = torch.from_numpy(_drawn(*parameter.shape))
    names = list(inputs)

    def evaluate(known: Mapping[str, Array]) -> list[Array]:
        tensors = {name: torch.from_numpy(np.asarray(array)) for name, array in known.items()}
        weights = {name: tensors[name] for name, _ in net.named_parameters()}
        given = tuple(tensors[name] for name in names)
        found: Any = torch.func.functional_call(net, weights, given)
        return [found.detach().numpy()]

    def load() -> tuple[Imported, Evaluate]:
        return import_module(net, [torch.from_numpy(array) for array in inputs.values()]), evaluate

    return load


_SERIES: Final = {"input": _drawn(1, 1, 8)}
_CONVOLUTION: Final = ImportedExample(
    name="torch_convolution",
    title="A convolution over a series, from PyTorch",
    paragraph="Two filters of three steps, a group norm, GELU and a linear layer. Each norm is one node, as in "
    "PyTorch.",
    source=_SOURCE,
    tags=_TAGS,
    inputs=_SERIES,
    load=_loading(
        nn.Sequential(nn.Conv1d(1, 2, 3), nn.GroupNorm(1, 2), nn.GELU(), nn.Flatten(), nn.Linear(12, 2)), _SERIES
    ),
)

_WORDS: Final = {"words": _drawn(1, 3, 4)}
_ATTENTION: Final = ImportedExample(
    name="torch_attention",
    title="An attention layer from PyTorch",
    paragraph="Two heads attend to three words; a residual connection and a layer norm follow. The heads are one "
    "attention node.",
    source=_SOURCE,
    tags=_TAGS,
    inputs=_WORDS,
    load=_loading(_Attention(), _WORDS),
)

EXAMPLES: Final = (_CONVOLUTION, _ATTENTION)
