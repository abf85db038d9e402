"""What several families write."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from gradserve_client.graph import Graph, Node
from gradserve_client.torch.call import Call

#: writes a function of its operands
Write = Callable[..., Node | Sequence[Node]]


def common_dtype(call: Call, names: Sequence[str]) -> str:
    """The dtype that PyTorch compares or computes these in: numbers and 0-d tensors count less than tensors."""
    found = []
    for name in names:
        stated = call[name]
        if isinstance(stated, int | float | bool):
            found.append(stated)
        else:
            kind = call.value(name).type
            found.append(torch.empty([0] * len(kind.shape), dtype=getattr(torch, kind.dtype), device="meta"))
    if len(found) == 1:
        return call.dtype(names[0])
    return str(torch.result_type(*found)).removeprefix("torch.")


def at_positions(node: Node, positions: Sequence[int], axis: int) -> Node:
    """The entries at positions of an axis, which are known."""
    return node.gather(axis=axis, indices=[int(each) for each in positions])


def to_front(node: Node, axis: int, rank: int) -> Node:
    """An axis before all others."""
    return node.transpose(axes=[axis, *(i for i in range(rank) if i != axis)]) if axis else node


def from_front(node: Node, axis: int, rank: int) -> Node:
    """The first axis where it was."""
    order = [*range(1, rank)]
    order.insert(axis, 0)
    return node.transpose(axes=order) if axis else node


def with_derivative(call: Call, operands: Sequence[Node], write: Write, derivative: Write) -> Node:
    """A function of nodes whose derivative is stated: of its operands, its result and the cotangent of that."""

    def body(graph: Graph) -> Node | Sequence[Node]:
        return write(*(graph.input() for _ in operands))

    def back(graph: Graph) -> Node | Sequence[Node]:
        return derivative(*(graph.input() for _ in range(len(operands) + 2)))

    return call.graph.call(*operands, body=call.graph.function(body), derivative=call.graph.function(back)).get_output(
        0
    )


def lowest(dtype: str) -> float:
    """What no number of a dtype is smaller than."""
    return -np.inf if dtype.startswith("float") else 0 if dtype == "bool" else int(np.iinfo(dtype).min)


def highest(dtype: str) -> float:
    """What no number of a dtype is larger than."""
    return np.inf if dtype.startswith("float") else 1 if dtype == "bool" else int(np.iinfo(dtype).max)
