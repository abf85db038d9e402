"""Matrix products, einsum and determinants."""

from __future__ import annotations

import string
from typing import NamedTuple

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.onnx.call import Call, RuleResult, is_float
from gradserve_client.onnx.families.helpers import as_dtype
from gradserve_client.onnx.families.table import RULES


@RULES("Gemm", since=7)
def gemm(call: Call) -> RuleResult:
    """Compute alpha · a @ b + beta · c."""
    a = call.node(0).transpose() if call.attrs["transA"] else call.node(0)
    b = call.node(1).transpose() if call.attrs["transB"] else call.node(1)
    product = _scaled(call, a.matmul(b), call.attrs["alpha"])
    return product.add(_scaled(call, call.node(2), call.attrs["beta"])) if call.has(2) else product


def _scaled(call: Call, node: Node, factor: float) -> Node:
    """Scale a node. Integers are scaled in float64, as NumPy does, and truncated."""
    if factor == 1:
        return node
    if is_float(call.dtype()):
        return node.mul_scalar(factor)
    return as_dtype(node.cast("float64").mul_scalar(factor), "float64", call.dtype())


@RULES("Det", since=11)
def det(call: Call) -> RuleResult:
    """Compute `det`, whose gradient at a singular matrix is that of the cofactors."""
    return call.node().det()


class _Terms(NamedTuple):
    operands: list[str]
    result: str


@RULES("Einsum", since=12)
def einsum(call: Call) -> RuleResult:
    """Translate to `einsum` with ellipses as letters, an explicit result, and diagonals for repeated letters."""
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
    inputs, arrow, result = equation.partition("->")
    operands = inputs.split(",")
    free = [letter for letter in string.ascii_letters if letter not in equation]
    hidden = [call.rank(i) - len(operand.replace("...", "")) for i, operand in enumerate(operands) if "..." in operand]
    max_hidden = max(hidden, default=0)
    ellipsis_letters = "".join(free[:max_hidden])
    if any(extents != (1,) and 1 in extents for extents in _broadcast_extents(call, operands, max_hidden)):
        raise Blocked("its ellipses broadcast extents of 1, which letters cannot")
    if not arrow:
        letters = inputs.replace(",", "").replace("...", "")
        result = "..." * ("..." in inputs) + "".join(
            sorted(letter for letter in {*letters} if letters.count(letter) == 1)
        )
    # ellipses align at their last axes, so a shorter one takes the last letters
    expanded = [
        operand.replace("...", ellipsis_letters[max_hidden - (call.rank(i) - len(operand.replace("...", ""))) :])
        for i, operand in enumerate(operands)
    ]
    return _Terms(expanded, result.replace("...", ellipsis_letters))


def _broadcast_extents(call: Call, operands: list[str], max_hidden: int) -> list[tuple[int, ...]]:
    """Return the operands' extents on each axis of the ellipses, aligned at the last."""
    extents_of_axes: list[set[int]] = [set() for _ in range(max_hidden)]
    for i, operand in enumerate(operands):
        if "..." in operand:
            start = operand.index("...")
            hidden = call.rank(i) - len(operand.replace("...", ""))
            for axis in range(hidden):
                extents_of_axes[max_hidden - hidden + axis].add(call.shape(i)[start + axis])
    return [tuple(sorted(extents)) for extents in extents_of_axes]


def _without_repeats(node: Node, letters: str) -> tuple[Node, str]:
    """Replace axes that share a letter with their diagonal, two at a time. The diagonal becomes the last axis."""
    for letter in dict.fromkeys(letters):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            rest = [i for i in range(len(letters)) if i not in {first, second}]
            node = node.transpose(axes=[*rest, first, second]).diag()
            letters = "".join(letters[i] for i in rest) + letter
    return node, letters
