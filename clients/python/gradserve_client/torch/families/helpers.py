"""Helpers shared by several rule families."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from gradserve_client.graph import Graph, Node
from gradserve_client.torch.call import Call

#: writes a function of its operands into a graph
Write = Callable[..., Node | Sequence[Node]]


def common_dtype(call: Call, names: Sequence[str]) -> str:
    """Return the dtype that PyTorch promotes operands to. Tensors take precedence over 0-d tensors and numbers."""
    operands = []
    for name in names:
        operand = call[name]
        if isinstance(operand, int | float | bool):
            operands.append(operand)
        else:
            kind = call.value(name).type
            operands.append(torch.empty([0] * len(kind.shape), dtype=getattr(torch, kind.dtype), device="meta"))
    if len(operands) == 1:
        return call.dtype(names[0])
    return str(torch.result_type(*operands)).removeprefix("torch.")


def take(node: Node, positions: Sequence[int], axis: int) -> Node:
    """Return the entries at constant positions of an axis."""
    return node.gather(axis=axis, indices=[int(each) for each in positions])


def move_to_front(node: Node, axis: int, rank: int) -> Node:
    """Move an axis to the front."""
    return node.transpose(axes=[axis, *(i for i in range(rank) if i != axis)]) if axis else node


def move_from_front(node: Node, axis: int, rank: int) -> Node:
    """Move the first axis back to its position."""
    order = [*range(1, rank)]
    order.insert(axis, 0)
    return node.transpose(axes=order) if axis else node


def with_derivative(call: Call, operands: Sequence[Node], write: Write, derivative: Write) -> Node:
    """Call a function with its own derivative, which takes the operands, the result and the result's cotangent."""

    def body(graph: Graph) -> Node | Sequence[Node]:
        return write(*(graph.input() for _ in operands))

    def back(graph: Graph) -> Node | Sequence[Node]:
        return derivative(*(graph.input() for _ in range(len(operands) + 2)))

    return call.graph.call(*operands, body=call.graph.function(body), derivative=call.graph.function(back)).get_output(
        0
    )


def lowest(dtype: str) -> float:
    """Return the least value of a dtype."""
    return -np.inf if dtype.startswith("float") else 0 if dtype == "bool" else int(np.iinfo(dtype).min)


def highest(dtype: str) -> float:
    """Return the greatest value of a dtype."""
    return np.inf if dtype.startswith("float") else 1 if dtype == "bool" else int(np.iinfo(dtype).max)
