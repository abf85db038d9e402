"""Square matrices and systems: vectors versus matrices, refusals, and independence of the matrices of a batch."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from engine import Builder, registry
from engine.ir.errors import ShapeMismatch
from engine.ir.run_context import RunContext
from engine.ir.tensor_type import TensorType
from engine.ops.linalg import matrices
from engine.ops.linalg.matrices import System, answer_each, compute_dtype, count_converted, square
from engine.ops.linalg.solve import Inv, Solve
from tests.engine.ops.values import Array, come_to

RNG = np.random.default_rng(16)
F64, F32, F16 = (np.dtype(name) for name in ("float64", "float32", "float16"))
SOLVE, INV = cast("Solve", registry().ops["solve"]), cast("Inv", registry().ops["inv"])


def regular(*shape: int) -> Array:
    return RNG.normal(size=shape) + 5 * np.eye(shape[-1])


@pytest.mark.parametrize("shape", [(3,), (), (2, 3), (4, 3, 2)], ids=str)
def test_non_square_operand_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        ShapeMismatch, match=r"operand 0 \(a\) must hold square matrices on its last two axes"
    ) as caught:
        square(TensorType(shape, F64), "a")
    assert caught.value.operand == 0
    assert square(TensorType((2, 0, 0), F32)) == TensorType((2, 0, 0), F32)


@pytest.mark.parametrize(("given", "as_computed"), [("int32", "float64"), ("bool", "float64"), ("float16", "float16")])
def test_compute_dtype_of_square_operands(given: str, as_computed: str) -> None:
    assert square(TensorType((2, 2), np.dtype(given))).dtype == as_computed


#: shapes of a, of b, and of the b passed to NumPy: a column if b is a vector
SYSTEMS = [
    ((3, 3), (3,), (3, 1)),
    ((3, 3), (3, 2), (3, 2)),
    ((2, 3, 3), (3,), (3, 1)),
    ((2, 3, 3), (2, 3), (2, 3, 1)),
    ((3, 3, 3), (3, 3), (3, 3)),  # could be either: matrices
    ((3, 3), (4, 2, 3, 5), (4, 2, 3, 5)),
    ((3, 3), (4, 3, 1), (4, 3, 1)),
    ((2, 1, 3, 3), (4, 3, 2), (4, 3, 2)),
    ((4, 2, 3, 3), (4, 2, 3), (4, 2, 3, 1)),
]


@pytest.mark.parametrize(("a", "b", "columns"), SYSTEMS, ids=str)
def test_solve_with_vector_or_matrix_right_hand_side(
    a: tuple[int, ...], b: tuple[int, ...], columns: tuple[int, ...]
) -> None:
    left, right = regular(*a), RNG.normal(size=b)
    expected = np.linalg.solve(left, right.reshape(columns))
    expected = expected if columns == b else expected[..., 0]
    actual = come_to(lambda x, y: x.solve(y), left, right)
    assert SOLVE.infer(TensorType.of(left), TensorType.of(right)) == TensorType.of(expected)
    np.testing.assert_allclose(actual, expected, 1e-11, 1e-12)


def test_shared_matrix_with_many_right_hand_sides_is_one_system() -> None:
    """The matrix is factored once."""
    builder = Builder(registry())
    a, b = builder.leaf(TensorType((3, 3), F64), 0), builder.leaf(TensorType((4, 2, 3, 5), F64), 1)
    y = a.solve(b)
    (solved,) = (node for node in builder.nodes if isinstance(node.op, System))
    assert solved.types[0].shape == (3, 40)
    assert y.shape == (4, 2, 3, 5)


@pytest.mark.parametrize("mapped", [(True, False), (False, True), (True, True)], ids=str)
def test_batched_solve_matches_each_system(mapped: tuple[bool, bool]) -> None:
    left, right = regular(*[4] * mapped[0], 3, 3), RNG.normal(size=(*[4] * mapped[1], 3, 2))
    actual = come_to(lambda a, b: SOLVE.batch(mapped, a, b), left, right)
    for i in range(4):
        expected = np.linalg.solve(left[i] if mapped[0] else left, right[i] if mapped[1] else right)
        np.testing.assert_allclose(actual[i], expected, 1e-11, 1e-12)


@pytest.fixture(params=["at once", "without what is not public", "another device"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> RunContext:
    if request.param == "without what is not public":
        monkeypatch.setattr(matrices, "_GUFUNCS", None)
    return RunContext(np, device="new" if request.param == "another device" else "cpu")


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 30])
@pytest.mark.parametrize("bad", ["none", "the first", "the last", "every third", "all"])
def test_singular_matrix_does_not_affect_the_others(run: RunContext, bad: str, count: int) -> None:
    x = regular(count, 3, 3)
    positions = {"none": [], "the first": [0], "the last": [-1], "every third": [*range(0, count, 3)]}
    is_singular = np.zeros(count, bool)
    is_singular[positions.get(bad, [*range(count)])] = True
    expected = np.linalg.inv(x)
    x[is_singular] = 0.0
    out = np.empty_like(x)
    answer_each(run, "inv", x, out=out)
    assert np.isnan(out[is_singular]).all()
    np.testing.assert_allclose(out[~is_singular], expected[~is_singular], 1e-11)


def test_nested_batch_axes_isolate_a_singular_matrix(run: RunContext) -> None:
    x = regular(1, 3, 2, 2)
    x[0, 1] = 0.0
    out = np.empty_like(x)
    answer_each(run, "inv", x, out=out)
    assert np.isnan(out[0, 1]).all()
    np.testing.assert_allclose(out[0, ::2], np.linalg.inv(x[0, ::2]), 1e-11)


def test_empty_batches_make_no_call(run: RunContext) -> None:
    answer_each(run, "inv", np.empty((0, 3, 3)), out=np.empty((0, 3, 3)))
    answer_each(run, "inv", np.empty((2, 0, 0)), out=np.empty((2, 0, 0)))


@pytest.mark.parametrize(("device", "out", "wanted"), [("cpu", F16, F64), ("cpu", F32, F64), ("new", F16, F32)])
def test_compute_dtype_depends_on_the_device(device: str, out: Any, wanted: Any) -> None:
    assert compute_dtype(RunContext(np, device=device), np.empty(1, out)) == wanted


def test_float64_operands_are_not_converted() -> None:
    assert count_converted(F64, TensorType((2, 3), F64), TensorType((4,), F32)) == 4


def test_workspace_is_the_result_plus_lapack_work() -> None:
    for dtype, copied in ((F64, 0), (F32, 5 * 9)):
        x = TensorType((5, 3, 3), dtype)
        assert INV.workspace(x, x) == 8 * (copied + 45 + 18)
    assert INV.workspace(TensorType((0, 3, 3), F64), TensorType((0, 3, 3), F64)) == 0
