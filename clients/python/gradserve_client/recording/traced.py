"""What is known of an array while a function is recorded: its node, shape and dtype."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.recording.lines import RecordingError, users_line

if TYPE_CHECKING:
    from gradserve_client.recording.recorder import Recorder

DType = np.dtype[Any]
Shape = tuple[int, ...]
#: a number of Python's, which takes the dtype of the array that it meets
Scalar = bool | int | float | complex


class Traced:
    """An array of which the server will know the elements."""

    # NumPy leaves operators with its arrays to this class.
    __array_ufunc__ = None

    def __init__(self, recorder: Recorder, node: Node, shape: Sequence[int], dtype: DType) -> None:
        self.recorder = recorder
        self.node = node
        self.shape: Shape = tuple(map(int, shape))
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def told(self) -> str:
        """Dtype and shape, as messages have them."""
        return f"{self.dtype.name}{list(self.shape)}"

    def become(self, other: Traced) -> None:
        """Stand for another node from now on, as after an assignment to elements.

        Raises RecordingError for an array of the function around, which is not this one's to change.
        """
        if other.recorder is not self.recorder:
            raise RecordingError(
                f"in place ({users_line()}): {self.told} is of the function around this one, which would not see that "
                "it is another: make it a carry, or give it back"
            )
        self.node, self.shape, self.dtype = other.node, other.shape, other.dtype
