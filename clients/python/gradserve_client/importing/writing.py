"""What the rules of all importers write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gradserve_client.graph import Node

#: where a slice ends that goes to the end, whatever the extent is: so that this may be free
TO_THE_END: Final = 2**31 - 1


def size(shape: Sequence[int]) -> int:
    """How many elements there are."""
    return math.prod(shape)


def several(node: Node, count: int) -> list[Node]:
    """The results of a node that has several."""
    return [node.get_output(i) for i in range(count)]


def lowest(dtype: np.dtype[Any]) -> Any:
    """What no number of a dtype is smaller than."""
    return -np.inf if dtype.kind == "f" else np.False_ if dtype.kind == "b" else np.iinfo(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """What no number of a dtype is larger than."""
    return np.inf if dtype.kind == "f" else np.True_ if dtype.kind == "b" else np.iinfo(dtype).max
