"""Conversion between PyTorch tensors and the arrays of requests and responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch

from gradserve_client.errors import InputError
from gradserve_client.recording.arguments import NUMPY, Feed, Library
from gradserve_client.tensors import Array


def _is_array(value: object) -> bool:
    return isinstance(value, torch.Tensor) or NUMPY.is_array(value)


def as_feed(value: Any) -> Feed:
    """Convert a tensor to an array, without a copy if possible. Other values are converted by NumPy.

    Raises InputError for an unsupported dtype.
    """
    if not isinstance(value, torch.Tensor):
        return NUMPY.to_feed(value)
    try:
        return NUMPY.to_feed(value.numpy(force=True))
    except TypeError:
        raise InputError(f"{value.dtype} is no dtype of the wire") from None


TORCH: Final = Library(_is_array, as_feed)


def as_tensor(array: Array, device: torch.device) -> torch.Tensor:
    """Convert an array to a writable tensor."""
    return torch.from_numpy(np.require(array, requirements="W")).to(device)


def device_of(values: Sequence[Any]) -> torch.device:
    """Return the device of the first tensor, or the CPU if there is none."""
    return next((value.device for value in values if isinstance(value, torch.Tensor)), torch.device("cpu"))
