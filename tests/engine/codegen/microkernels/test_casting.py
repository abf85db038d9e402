"""Elements in another dtype are NumPy's astype, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codegen.microkernels.axis_kernels import cast
from engine.ir.tensor_type import COMPLEX, REALS, Strided, TensorType
from tests.engine.codegen.microkernels.running import Array, run_recipe

pytest.importorskip("llvmlite")

KNOWN = [dtype for dtype in REALS if dtype != "float16"]
NUMBERS = [
    0,
    1,
    -1,
    2.5,
    -2.5,
    3.999999,
    -100.7,
    127,
    200,
    65537.5,
    2**31 - 1,
    -(2**31),
    2**53 + 2,
    -(2**53) - 2,
    1e-30,
]


def numbers(dtype: str) -> Array:
    """Of all dtypes, with what each of them holds."""
    kept = [x for x in NUMBERS if dtype[0] != "u" or x >= 0]
    if np.dtype(dtype).kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        kept = [*(int(x) for x in kept if low <= x <= high), low, high]
    return np.array(kept, dtype)


@pytest.mark.parametrize("to", KNOWN)
@pytest.mark.parametrize("of", KNOWN)
def test_every_dtype_becomes_every_other(of: str, to: str) -> None:
    x = numbers(of)
    if np.dtype(of).kind == "f" and np.dtype(to).kind in "iu":
        bounds = np.iinfo(to)
        x = x[(x >= float(bounds.min)) & (x < float(bounds.max))]
    made = cast(TensorType(x.shape, np.dtype(to)), TensorType.of(x))
    assert made is not None
    assert run_recipe(made, [x], x.shape, to).tobytes() == x.astype(to).tobytes()


def test_what_is_no_number_is_true_and_stays_so() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0])
    for to in ("bool", "float32", "float64"):
        made = cast(TensorType(x.shape, np.dtype(to)), TensorType.of(x))
        assert made is not None
        np.testing.assert_array_equal(run_recipe(made, [x], x.shape, to), x.astype(to))


def test_what_lies_askew_is_read_where_it_lies() -> None:
    x = np.arange(60).reshape(3, 4, 5)[::2, :, ::-2].swapaxes(0, 2)
    made = cast(TensorType(x.shape, np.dtype("float32")), Strided(TensorType.of(x), x.strides))
    assert made is not None
    assert np.array_equal(run_recipe(made, [x], x.shape, "float32", order=lambda n: reversed(range(n))), x)


def test_halves_are_left_to_numpy() -> None:
    half, single = TensorType((3,), np.dtype("float16")), TensorType((3,), np.dtype("float32"))
    assert cast(half, single) is None
    assert cast(single, half) is None


@pytest.mark.parametrize("to", COMPLEX)
@pytest.mark.parametrize("of", ["float32", "float64", *COMPLEX])
def test_complex_numbers_are_left_to_numpy(of: str, to: str) -> None:
    assert cast(TensorType((3,), np.dtype(to)), TensorType((3,), np.dtype(of))) is None
