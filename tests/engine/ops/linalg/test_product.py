"""Matrix products: types match NumPy, errors name the operand, and BLAS reads strided operands if it can."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ir.errors import ShapeMismatch
from engine.ir.tensor_type import TensorType
from engine.ops.linalg.matmul import is_readable, product_shape, product_type
from tests.sampling import together

SHAPES = [(3,), (2, 3), (3, 2), (4, 2, 3), (4, 3, 2), (1, 3, 3), (5, 1, 2, 3), (0, 3), (3, 0), (2,), (5, 4, 3, 1)]


@together
@pytest.mark.parametrize("b", SHAPES, ids=str)
@pytest.mark.parametrize("a", SHAPES, ids=str)
def test_types_and_refusals_match_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = np.zeros(a, "float32"), np.zeros(b)
    try:
        expected = np.matmul(left, right)
    except ValueError:
        with pytest.raises(ShapeMismatch) as caught:
            product_type(TensorType.of(left), TensorType.of(right))
        assert caught.value.operand == 1
        return
    assert product_type(TensorType.of(left), TensorType.of(right)) == TensorType.of(np.asarray(expected))
    assert product_shape(a, b) == expected.shape


def typed(*shape: int) -> TensorType:
    return TensorType(shape, np.dtype("float64"))


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ((), (3,), r"operand 0 \(a\) must have at least 1 axis, but is 0-d"),
        ((3,), (), r"operand 1 \(b\) must have at least 1 axis, but is 0-d"),
        ((2, 3), (4, 5), r"operand 1 \(b\) must have extent 3 at axis -2, .* but has shape \[4, 5\]"),
        ((2, 3), (4,), r"operand 1 \(b\) must have extent 3 at axis -1, .* but has shape \[4\]"),
        ((2, 2, 3), (4, 3, 5), r"operand 1 \(b\) must have batch axes that broadcast with .* shape \[2, 2, 3\]"),
    ],
)
def test_errors_name_the_operand_and_the_expected_shape(a: tuple[int, ...], b: tuple[int, ...], said: str) -> None:
    with pytest.raises(ShapeMismatch, match=said) as caught:
        product_type(typed(*a), typed(*b))
    assert said.startswith(f"operand {caught.value.operand} ")


X = np.zeros((4, 6, 8))


@pytest.mark.parametrize(
    ("array", "readable"),
    [
        (X, True),
        (X.swapaxes(-1, -2), True),
        (X[:, ::2], True),
        (X[..., ::2], False),
        (X[..., ::-1], False),
        (X[:, ::-1], False),
        (np.broadcast_to(X[:, :1], X.shape), False),
        (X.astype("float32"), False),
        (X[:, 1:3, 2:5], True),
    ],
    ids=["dense", "turned", "rows apart", "gaps", "flipped", "rows flipped", "broadcast", "narrow", "part"],
)
def test_layouts_readable_by_blas(array: np.ndarray[tuple[int, ...], np.dtype[np.float64]], readable: bool) -> None:
    assert is_readable(array, np.dtype("float64")) == readable
