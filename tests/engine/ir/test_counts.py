"""Singular and plural in messages: no message says “1 operands”."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Compiler, EngineError, Limits, Program, Statement, TensorType, registry
from engine.ir.errors import counted

PINNED = Path(__file__).parents[2] / "golden/messages.txt"
Case = tuple[str, list[tuple[int, ...]], dict[str, Any], Limits, str, str, str]
ANY = Limits()

#: op, shapes of its operands, attributes, limits; the end of the message, expected, got
ONE: list[Case] = [
    ("add", [(2,)], {}, ANY, "takes 2 operands (a, b), but got 1", "2 operands", "1 operand"),
    ("cat", [], {}, ANY, "takes at least 1 operand (x...), but got 0", "at least 1 operand", "0 operands"),
    ("slice", [(2,)], {"starts": [0, 0]}, ANY, "must have at most 1 entry, one for each axis, but has 2 entries",
     "at most 1 entry, one for each axis", "2 entries"),
    ("update_slice", [(2, 2), (1, 1)], {"starts": [0]}, ANY,
     "must have 2 entries, one for each axis, but has 1 entry", "2 entries, one for each axis", "1 entry"),
    ("reshape", [()], {"shape": [2]}, ANY, "shape [] has 1 element and cannot be reshaped to [2]", "1 element", "[2]"),
    ("tril", [(2,)], {}, ANY, "but the operand has 1", "at least 2 axes", "1 axis"),
    ("einsum", [(2, 2)], {"equation": "a->a"}, ANY, "must have 1 axis, but has shape [2, 2]", "1 axis", "[2, 2]"),
    ("einsum", [(2,)], {"equation": "a,b->a"}, ANY, "must name 1 operand, but is “a,b->a”", "name 1 operand", "a,b->a"),
    ("conv2d", [(1, 1, 4, 4), (1, 2, 1, 1)], {}, ANY, "(1 channel in 1 group), but has shape [1, 2, 1, 1]",
     "extent 1 on axis 1 (1 channel in 1 group)", "[1, 2, 1, 1]"),
    ("neg", [(2, 2)], {}, Limits(rank=1), "may have at most 1 axis, but this one has 2", "at most 1 axis", "2 axes"),
    ("neg", [(2,)], {}, Limits(bytes=1), "needs 16 bytes, and the limit is 1 byte", "at most 1 byte", "16 bytes"),
    ("neg", [(2,)], {}, Limits(flops=1), "needs 2 FLOPs, and the limit is 1 FLOP", "at most 1 FLOP", "2 FLOPs"),
    ("neg", [(2,)], {}, Limits(nodes=1),
     "has more than 1 node, including those of its gradients", "at most 1 node", "at least 2 nodes"),
]  # fmt: skip


def build(op: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any], limits: Limits) -> None:
    """Plan one op on inputs of these shapes."""
    ops = registry().ops
    types = {i: TensorType(shape, np.dtype("float64")) for i, shape in enumerate(shapes)}
    statements = [*(Statement(ops["input"]) for _ in shapes), Statement(ops[op], tuple(types), attrs)]
    Compiler(limits).forward(Program(registry(), statements, limits), types)


@pytest.mark.parametrize(("op", "shapes", "attrs", "limits", "end", "expected", "got"), ONE)
def test_counts_of_one_are_singular(
    op: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any], limits: Limits, end: str, expected: str, got: str
) -> None:
    with pytest.raises(EngineError) as caught:
        build(op, shapes, attrs, limits)
    error = caught.value
    assert error.detail.endswith(end)
    assert (error.expected, error.got) == (expected, got)


def test_feed_of_an_unknown_node_counts_the_nodes() -> None:
    program = Program(registry(), [Statement(registry().ops["full"])])
    with pytest.raises(EngineError, match=r"but the graph has 1 node$"):
        Compiler(Limits()).forward(program, {7: TensorType((), np.dtype("float64"))})


def test_counted_picks_singular_or_plural() -> None:
    assert [counted(i, "entry", "entries") for i in range(3)] == ["0 entries", "1 entry", "2 entries"]
    assert [counted(i, "node") for i in range(3)] == ["0 nodes", "1 node", "2 nodes"]


def test_pinned_messages_have_no_plural_after_one() -> None:
    plural = re.compile(r"\b1 (?:operands|entries|elements|axes|nodes|bytes|FLOPs|parts|outputs|channels|groups)\b")
    assert not plural.findall(PINNED.read_text(encoding="utf-8"))
