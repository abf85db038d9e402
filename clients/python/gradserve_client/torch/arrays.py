"""Tensors of PyTorch as arrays that are fed, and arrays that come back as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch

from gradserve_client.errors import InputError
from gradserve_client.recording.arguments import NUMPY, Fed, Library
from gradserve_client.tensors import Array


def _is_array(value: object) -> bool:
    return isinstance(value, torch.Tensor) or NUMPY.is_array(value)


def as_fed(value: Any) -> Fed:
    """The elements of a tensor, without a copy where that is possible; what else is fed, as everywhere.

    Raises InputError for a dtype that the wire lacks.
    """
    if not isinstance(value, torch.Tensor):
        return NUMPY.fed(value)
    try:
        return NUMPY.fed(value.numpy(force=True))
    except TypeError:
        raise InputError(f"{value.dtype} is no dtype of the wire") from None


TORCH: Final = Library(_is_array, as_fed)


def as_tensor(array: Array, device: torch.device) -> torch.Tensor:
    """A tensor of these elements, which may be written to."""
    return torch.from_numpy(np.require(array, requirements="W")).to(device)


def device_of(values: Sequence[Any]) -> torch.device:
    """Where the first tensor among them is; else the memory of this machine."""
    return next((value.device for value in values if isinstance(value, torch.Tensor)), torch.device("cpu"))
