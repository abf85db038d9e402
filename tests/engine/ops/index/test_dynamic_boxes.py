"""Boxes at computed starts: NumPy's slices are the reference, clamped into the array; also one per example."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import LATEST, Compiler, Limits, Program, Statement, TensorType, registry
from engine.autodiff.vmap import vmap
from engine.compiler.plan import make_plan
from engine.ir.errors import BadAttribute, DtypeMismatch, ShapeMismatch
from engine.ir.passes import optimise
from engine.ir.run_context import RunContext
from engine.ops.index.slice import read_box, write_box
from engine.runtime.numpy_backend import NumPyExecutor
from tests.engine.ops.run import run

Array = np.ndarray[Any, Any]
X = np.arange(20.0).reshape(4, 5)
SIZES = [(2, 3), (4, 5), (1, 5), (0, 2), (4, 0)]
#: before the array, within it, and beyond it
STARTS = [*product([-(2**63), -1, 0, 1, 3, 2**63 - 1], [-2, 0, 2, 9])]


def box(starts: Any, sizes: tuple[int, ...]) -> tuple[slice, ...]:
    """The slices of the box after clamping."""
    firsts = [min(max(s, 0), n - size) for s, n, size in zip(starts, X.shape, sizes, strict=True)]
    return tuple(slice(f, f + size) for f, size in zip(firsts, sizes, strict=True))


@pytest.mark.parametrize("sizes", SIZES)
def test_starts_are_clamped_into_the_array(sizes: tuple[int, ...]) -> None:
    updates = -np.ones(sizes)
    for starts in STARTS:
        where, starts_array = box(starts, sizes), np.array(starts)
        np.testing.assert_array_equal(run("slice_at", X, starts_array, sizes=list(sizes)), X[where])
        written = X.copy()
        written[where] = updates
        np.testing.assert_array_equal(run("update_slice_at", X, updates, starts_array), written)


@pytest.mark.parametrize("sizes", SIZES)
def test_general_implementation_matches_numpy(sizes: tuple[int, ...]) -> None:
    for starts in STARTS:
        where, out, written = box(starts, sizes), np.empty(sizes), X.copy()
        read_box.general(RunContext(np), X, np.array(starts), out)
        np.testing.assert_array_equal(out, X[where])
        write_box.general(RunContext(np), written, np.array(starts), -np.ones(sizes))
        expected = X.copy()
        expected[where] = -1
        np.testing.assert_array_equal(written, expected)


@pytest.mark.parametrize("sizes", SIZES)
def test_each_example_has_its_own_starts(sizes: tuple[int, ...]) -> None:
    starts = np.array(STARTS)
    updates = -1.0 - np.arange(np.prod(sizes)).reshape(sizes)
    for op, operands in (("slice_at", [X, starts]), ("update_slice_at", [X, updates, starts])):
        ops, n = registry().ops, len(operands)
        attrs = {"sizes": list(sizes)} if op == "slice_at" else {}
        statements = [*[Statement(ops["input"])] * n, Statement(ops[op], tuple(range(n)), attrs)]
        types = {i: TensorType.of(x) for i, x in enumerate([*operands[:-1], starts[0]])}
        builder, values = Program(registry(), statements, opset=LATEST).build(types, [n])
        graph = vmap(builder.graph([values[n]]), {n - 1}, len(starts))
        actual = NumPyExecutor().run(make_plan(optimise(graph), Limits()), dict(enumerate(operands)))[0]
        for one, start in zip(actual, STARTS, strict=True):
            expected = X[box(start, sizes)] if op == "slice_at" else X.copy()
            if op == "update_slice_at":
                expected[box(start, sizes)] = updates
            np.testing.assert_array_equal(one, expected)


def test_invalid_sizes_and_operands_are_refused() -> None:
    starts = np.array([0, 0])
    with pytest.raises(BadAttribute, match="sizes must be at most 4 on axis 0, but is 5"):
        run("slice_at", X, starts, sizes=[5, 5])
    with pytest.raises(BadAttribute, match="sizes must have 2 entries, one for each axis, but has 1 entry"):
        run("slice_at", X, starts, sizes=[2])
    with pytest.raises(
        ShapeMismatch, match=r"operand 1 \(starts\) must have shape \[2\], one start for each axis of x"
    ):
        run("slice_at", X, np.array([0]), sizes=[2, 2])
    with pytest.raises(DtypeMismatch, match=r"operand 1 \(starts\) .* but is float64"):
        run("slice_at", X, starts * 1.0, sizes=[2, 2])
    with pytest.raises(ShapeMismatch, match=r"operand 1 \(updates\) must have rank 2 and at most shape \[4, 5\]"):
        run("update_slice_at", X, np.zeros((5, 5)), starts)


def test_huge_sizes_are_refused_before_allocation() -> None:
    ops = registry().ops
    statements = [*[Statement(ops["input"])] * 2, Statement(ops["slice_at"], (0, 1), {"sizes": [2**62, 1]})]
    types = {0: TensorType((4, 5), np.dtype("float64")), 1: TensorType((2,), np.dtype("int64"))}
    with pytest.raises(BadAttribute):
        Compiler(Limits()).forward(Program(registry(), statements, opset=LATEST), types, [2])
