"""Matrices, einsum, determinants."""

from __future__ import annotations

import string
from typing import NamedTuple

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.onnx.call import Call, Said, is_float
from gradserve_client.onnx.families.helpers import as_dtype
from gradserve_client.onnx.families.table import RULES


@RULES("Gemm", since=7)
def gemm(call: Call) -> Said:
    """alpha · a @ b + beta · c."""
    a = call.node(0).transpose() if call.attrs["transA"] else call.node(0)
    b = call.node(1).transpose() if call.attrs["transB"] else call.node(1)
    product = _scaled(call, a.matmul(b), call.attrs["alpha"])
    return product.add(_scaled(call, call.node(2), call.attrs["beta"])) if call.has(2) else product


def _scaled(call: Call, node: Node, by: float) -> Node:
    """Whole numbers are scaled by floats as NumPy scales them, and cut off."""
    if by == 1:
        return node
    if is_float(call.dtype()):
        return node.mul_scalar(by)
    return as_dtype(node.cast("float64").mul_scalar(by), "float64", call.dtype())


@RULES("Det", since=11)
def det(call: Call) -> Said:
    """`det`, whose gradient of a singular matrix is that of the cofactors."""
    return call.node().det()


class _Terms(NamedTuple):
    operands: list[str]
    result: str


@RULES("Einsum", since=12)
def einsum(call: Call) -> Said:
    """With its ellipses as letters, its result stated, and letters that repeat within an operand as diagonals."""
    terms = _terms(call)
    nodes = []
    letters = []
    for node, operand in zip(call.nodes, terms.operands, strict=True):
        diagonal, letter = _without_repeats(node, operand)
        nodes.append(diagonal)
        letters.append(letter)
    return call.graph.einsum(*nodes, equation=f"{','.join(letters)}->{terms.result}")


def _terms(call: Call) -> _Terms:
    equation = call.text("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    operands = left.split(",")
    free = [letter for letter in string.ascii_letters if letter not in equation]
    hidden = [call.rank(i) - len(operand.replace("...", "")) for i, operand in enumerate(operands) if "..." in operand]
    most = max(hidden, default=0)
    dots = "".join(free[:most])
    if any(extents != (1,) and 1 in extents for extents in _broadcast_extents(call, operands, most)):
        raise Blocked("its ellipses broadcast extents of 1, which letters do not")
    if not arrow:
        stated = left.replace(",", "").replace("...", "")
        result = "..." * ("..." in left) + "".join(sorted(letter for letter in {*stated} if stated.count(letter) == 1))
    # an ellipsis stands for the last of the axes that any has
    expanded = [
        operand.replace("...", dots[most - (call.rank(i) - len(operand.replace("...", ""))) :])
        for i, operand in enumerate(operands)
    ]
    return _Terms(expanded, result.replace("...", dots))


def _broadcast_extents(call: Call, operands: list[str], most: int) -> list[tuple[int, ...]]:
    """For each axis of the ellipses, counted from the last, the extents that operands have there."""
    found: list[set[int]] = [set() for _ in range(most)]
    for i, operand in enumerate(operands):
        if "..." in operand:
            start = operand.index("...")
            hidden = call.rank(i) - len(operand.replace("...", ""))
            for place in range(hidden):
                found[most - hidden + place].add(call.shape(i)[start + place])
    return [tuple(sorted(extents)) for extents in found]


def _without_repeats(node: Node, letters: str) -> tuple[Node, str]:
    """The diagonal of axes that have one letter, two at a time; it is the last axis then."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            rest = [i for i in range(len(letters)) if i not in {first, second}]
            node = node.transpose(axes=[*rest, first, second]).diag()
            letters = "".join(letters[i] for i in rest) + letter
    return node, letters
