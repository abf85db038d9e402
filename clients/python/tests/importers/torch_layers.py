"""Layers with parameters of their own, by the rule that imports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from clients.python.tests.importers.torch_made import normal


class Recurrent(torch.nn.Module):
    """One of PyTorch's recurrent layers."""

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer = getattr(torch.nn, kind)(3, 4, **options).double()

    def forward(self, x: torch.Tensor, *state: Any) -> Any:
        return self.layer(x, *state)


#: layers with parameters of their own, by the rule that imports them
LAYERS: Final[dict[str, list[tuple[str, dict[str, Any], Sequence[Any]]]]] = {
    "lstm.input": [
        ("LSTM", {"num_layers": 2, "bidirectional": True}, [normal(5, 2, 3)]),
        ("LSTM", {"batch_first": True, "bias": False, "proj_size": 2}, [normal(2, 5, 3)]),
        ("LSTM", {}, [normal(5, 2, 3), (normal(1, 2, 4), normal(1, 2, 4, seed=4))]),
    ],
    "gru.input": [
        ("GRU", {"num_layers": 2, "batch_first": True, "bidirectional": True}, [normal(2, 5, 3)]),
        ("GRU", {"bias": False}, [normal(5, 2, 3), normal(1, 2, 4)]),
    ],
    "rnn_tanh.input": [("RNN", {}, [normal(5, 2, 3)])],
    "rnn_relu.input": [("RNN", {"nonlinearity": "relu"}, [normal(5, 3)])],
}
