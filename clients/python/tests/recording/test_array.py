"""The recorded array: operators, indexing and assignment match NumPy; attributes and dtypes match the standard."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.recording import namespace
from gradserve_client.recording.emitting import common_dtype

X = np.random.default_rng(21).standard_normal((4, 5, 3))
ROWS, COLUMNS = np.array([2, 0, -1]), np.array([1, -2, 0])
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
BITS = [operator.and_, operator.or_, operator.xor]


def assert_same(client: gs.Client, call: Callable[..., Any], *arrays: Any) -> None:
    """Check that a recorded call has NumPy's values, shape and dtype."""
    computed = gs.function(call, client=client)(*arrays)
    with np.errstate(all="ignore"):
        expected = np.asarray(call(*map(np.copy, arrays)))
    assert (computed.shape, computed.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(computed, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("operate", [*ARITHMETIC, *COMPARISONS])
def test_operators(client: gs.Client, operate: Any) -> None:
    a, b = np.abs(X[0]) + 0.5, np.abs(X[1]) + 0.5
    assert_same(client, operate, a, b)
    assert_same(client, lambda x: operate(x, 2), a)
    assert_same(client, lambda x: operate(2.5, x), a)
    assert_same(client, lambda x: operate(b, x), a)
    assert_same(client, lambda x: operate(x, b), a)


@pytest.mark.parametrize("operate", BITS)
def test_operators_on_bools(client: gs.Client, operate: Any) -> None:
    assert_same(client, operate, X[0] > 0, X[1] > 0)
    assert_same(client, lambda x: operate(True, x), X[0] > 0)


def test_unary_operators_and_matmul(client: gs.Client) -> None:
    assert_same(client, lambda x: -abs(+x), X)
    assert_same(client, lambda x: ~x, X > 0)
    assert_same(client, lambda x, y: x @ y, X, X[0].T)
    assert_same(client, lambda x: X[0].T @ x, X[1])


@pytest.mark.parametrize("operate", [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow])
def test_in_place_operators_change_all_aliases(client: gs.Client, operate: Any) -> None:
    def change(x: Any) -> Any:
        other = x
        x = operate(x, 2)
        assert x is other
        return other

    assert_same(client, change, X[0])


def test_in_place_operators_cannot_change_shape_or_dtype(client: gs.Client) -> None:
    with pytest.raises(gs.RecordingError, match=r"add \(test_array.py:\d+\): float64\[3\] cannot become .* in place"):
        gs.function(lambda x: operator.iadd(x, np.ones((2, 3))), client=client)(X[0, 0])
    with pytest.raises(gs.RecordingError, match="cannot become float64"):
        gs.function(lambda x: operator.itruediv(x, 2), client=client)(ROWS)


def test_argument_arrays_are_not_modified(client: gs.Client) -> None:
    argument = X[0].copy()

    def change(x: Any) -> Any:
        x[0] = 1.0
        x += 1
        return x

    gs.function(change, client=client)(argument)
    assert (argument == X[0]).all()


KEYS: list[Any] = [
    0,
    -1,
    (1, 2),
    (1, 2, 0),
    slice(1, 3),
    slice(None, None, -1),
    (slice(None), slice(4, 0, -2)),
    slice(3, 1),
    (..., 0),
    (0, ..., slice(1, None)),
    None,
    (slice(None), None, 1),
    (..., None),
    (None, 0, None),
    (),
    ...,
    [0, 2],
    ROWS,
    (slice(None), ROWS),
    (..., [2, 0]),
    (ROWS, COLUMNS),
    (slice(None), ROWS, np.array([0, 1, 2])),
    (ROWS, slice(None), np.array([0, 1, 2])),
    (slice(None), ROWS, None, np.array([0, 1, 2])),
    (slice(None), None, ROWS, 1),
    (ROWS, 1),
    (0, slice(None), np.array([1, 1])),
    (ROWS[:, None], COLUMNS),
    (np.int64(1), slice(None)),
    X[:, 0, 0] > 0,
    X > 0,
    (slice(None), np.array([True, False, True, True, False])),
    np.array([], np.int64),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indexing(client: gs.Client, key: Any) -> None:
    assert_same(client, lambda x: x[key], X)


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_assignment(client: gs.Client, key: Any) -> None:
    def assign(value: Any) -> Callable[[Any], Any]:
        def change(x: Any) -> Any:
            x[key] = value
            return x

        return change

    assert_same(client, assign(7), X)
    assert_same(client, assign(np.arange(X[key].size).reshape(X[key].shape)), X)


@pytest.mark.parametrize(
    ("read", "indices"),
    [
        (lambda x, i: x[i], ROWS),
        (lambda x, i: x[i], np.int64(-2)),
        (lambda x, i: x[:, i], ROWS),
        (lambda x, i: x[..., i, 0], ROWS[:, None]),
        (lambda x, i: x[i, i], ROWS),
        (lambda x, i: x[i, :, i], np.array([0, -1])),
        (lambda x, i: x[i, 1:, 0], ROWS),
    ],
)
def test_indexing_by_recorded_positions(client: gs.Client, read: Any, indices: Any) -> None:
    assert_same(client, read, X, indices)


def test_assignment_by_recorded_masks_and_positions(client: gs.Client) -> None:
    def masked(x: Any) -> Any:
        x[x > 0] = 0
        x[x[:, 0, 0] < -0.5] = 3
        return x

    def indexed(x: Any, i: Any, row: Any) -> Any:
        x[i] = row
        x[:, i] = 5
        return x

    assert_same(client, masked, X)
    assert_same(client, indexed, X, np.int64(-1), X[0] + 1)


@pytest.mark.parametrize(
    "assign",
    [
        lambda x, i, j, new: operator.setitem(x, i, new[:3]),
        lambda x, i, j, new: operator.setitem(x, (i, j), 7.0),
        lambda x, i, j, new: operator.setitem(x, (i, slice(None), j), new[0, :3, 0:1]),
        lambda x, i, j, new: operator.setitem(x, (slice(1, 3), j), new[1:3, :3]),
        lambda x, i, j, new: operator.setitem(x, (0, slice(None, None, 2), j), new[0, :3]),
        lambda x, i, j, new: operator.setitem(x, (i[:, None], j), new[:3, :3]),
        lambda x, i, j, new: operator.setitem(x, i[0], new[0]),
    ],
)
def test_assignment_at_recorded_positions(client: gs.Client, assign: Any) -> None:
    def change(x: Any, i: Any, j: Any, new: Any) -> Any:
        assign(x, i, j, new)
        return x

    assert_same(client, change, X, ROWS, COLUMNS, X + 10)


def test_assignment_at_recorded_positions_passes_gradients(client: gs.Client) -> None:
    def f(x: Any, i: Any, v: Any) -> Any:
        y = x * 1
        y[i] = v
        return namespace.sum(y * y)

    x, v = np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0])
    grad_x, grad_v = gs.function(f, client=client).grad(x, np.array([-1, -1]), v, wrt=("x", "v"))
    assert grad_x.tolist() == [2, 4, 0]
    assert grad_v.tolist() == [0, 14]


def test_new_axes_with_recorded_positions_are_refused(client: gs.Client) -> None:
    with pytest.raises(gs.RecordingError, match="new axes with positions"):
        gs.function(lambda x, i: operator.setitem(x, (None, i), 1.0), client=client)(X, ROWS)


def test_compress_takes_k_elements_of_a_mask(client: gs.Client) -> None:
    def f(x: Any, k: int, fill: float) -> Any:
        return namespace.compress(x > 0.5, x, k, fill=fill)

    x = np.array([0.2, 0.9, 0.4, 0.7, 0.6])
    recorded = gs.function(f, client=client, static=("k", "fill"))
    entries, taken = recorded(x, 4, -1.0)
    assert (entries.tolist(), int(taken)) == ([0.9, 0.7, 0.6, -1.0], 3)
    assert recorded(x, 2, np.inf).entries.tolist() == [0.9, 0.7]
    assert recorded(x, 4, np.inf).entries.tolist() == [0.9, 0.7, 0.6, np.inf]
    squares = gs.function(lambda x: namespace.sum(f(x, 4, 0.0).entries ** 2), client=client)
    assert squares.grad(x).tolist() == [0, 1.8, 0, 1.4, 1.2]
    columns = gs.function(lambda m, x: namespace.compress(m, x, 2, axis=-1).entries, client=client)
    assert columns(np.array([True, False, True]), X).tolist() == X[..., [0, 2]].tolist()
    with pytest.raises(gs.RecordingError, match=r"compress.*mask of 5 bools.*float64\[4\]"):
        gs.function(lambda x: namespace.compress(x[1:], x, 2), client=client)(x)
    with pytest.raises(gs.RecordingError, match=r"compress\(mask, x, k\)"):
        gs.function(lambda x: x[x > 0], client=client)(x)


def test_nonzero_gives_k_positions(client: gs.Client) -> None:
    x = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, np.nan]])
    recorded = gs.function(namespace.nonzero, client=client, static=("k",))
    places, taken = recorded(x, k=4)
    assert (places.tolist(), places.dtype, int(taken)) == ([[0, 1], [1, 0], [1, 2], [0, 0]], np.int64, 3)
    assert recorded(x > 2.5, k=1).places.tolist() == [[1, 0]]
    assert recorded(np.array(1), k=2).places.shape == (2, 0)
    squares = gs.function(lambda x: namespace.sum(x[tuple(namespace.nonzero(x, 2).places.T)] ** 2), client=client)
    assert squares.grad(np.nan_to_num(x)).tolist() == [[0, 4, 0], [6, 0, 0]]


def test_assignment_passes_gradients(client: gs.Client) -> None:
    def f(x: Any, v: Any) -> Any:
        y = x * 1
        y[1:] = v
        y[::2] = y[::2] * 3
        return namespace.sum(y * y)

    grad_x, grad_v = gs.function(f, client=client).grad(np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0]), wrt=(0, 1))
    assert grad_x.tolist() == [18, 0, 0]
    assert grad_v.tolist() == [10, 126]


@pytest.mark.parametrize(
    ("key", "error", "told"),
    [
        (7, IndexError, "position 7 is out of range"),
        ((0, 0, 0, 0), IndexError, "4 are indexed"),
        ((..., ...), gs.RecordingError, "only one Ellipsis"),
        ("x", gs.RecordingError, "str"),
        (np.array([9]), gs.RecordingError, "out of range for an axis of extent 4"),
        (True, gs.RecordingError, "mask"),
        (1.5, gs.RecordingError, "float"),
    ],
)
def test_invalid_keys_are_refused(client: gs.Client, key: Any, error: Any, told: str) -> None:
    with pytest.raises(error, match=told):
        gs.function(lambda x: x[key], client=client)(X)


def test_mask_indexing_suggests_where(client: gs.Client) -> None:
    with pytest.raises(gs.RecordingError, match=r"getitem \(test_array.py:\d+\).*where\(\)"):
        gs.function(lambda x: x[x > 0], client=client)(X)


def test_array_attributes(client: gs.Client) -> None:
    def look(x: Any) -> Any:
        assert (x.shape, x.dtype, x.ndim, x.size, x.device) == ((4, 5, 3), np.float64, 3, 60, "server")
        assert x.to_device(x.device) is x
        assert len(x) == 4
        assert x.__array_namespace__(api_version="2024.12") is namespace
        assert [row.shape for row in x] == [(5, 3)] * 4
        assert x.mT.shape == (4, 3, 5)
        assert x[0].T.shape == (3, 5)
        assert "float64[4, 5, 3]" in repr(x)
        for wrong in (
            lambda: x.__array_namespace__(api_version="2050.12"),
            lambda: x.T,
            lambda: x.to_device("elsewhere"),
            lambda: complex(x[0, 0, 0]),
            lambda: np.asarray(x),
            lambda: np.sum(x),
            lambda: float(x),
        ):
            with pytest.raises(gs.RecordingError):
                wrong()
        with pytest.raises(AttributeError, match=r"write xp.sum\(x\)"):
            x.sum()
        for wrong in (lambda: len(x[0, 0, 0]), lambda: hash(x), lambda: operator.index(x[0, 0, 0]), lambda: x + "a"):
            with pytest.raises(TypeError):
                wrong()
        return x

    assert (gs.function(look, client=client)(X) == X).all()


DTYPES = [
    *("bool", "int8", "uint8", "int16", "int32", "uint32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
#: promotions that the standard defines, with float16 treated as the other floats
PROMOTION = {
    ("int8", "int32"): "int32", ("int8", "int64"): "int64", ("int32", "int64"): "int64", ("uint8", "int32"): "int32",
    ("uint8", "int64"): "int64", ("uint8", "uint32"): "uint32", ("int8", "uint32"): "int64",
    ("int8", "int16"): "int16", ("int8", "uint8"): "int16", ("uint8", "int16"): "int16", ("int16", "int32"): "int32",
    ("int16", "uint32"): "int64", ("int16", "int64"): "int64",
    ("int32", "uint32"): "int64", ("uint32", "int64"): "int64", ("float32", "float64"): "float64",
    ("float16", "float32"): "float32", ("float16", "float64"): "float64", ("float32", "complex64"): "complex64",
    ("float64", "complex64"): "complex128", ("float32", "complex128"): "complex128",
    ("complex64", "complex128"): "complex128", **{(dtype, dtype): dtype for dtype in DTYPES},
}  # fmt: skip


@pytest.mark.parametrize(("pair", "result"), PROMOTION.items(), ids=repr)
def test_dtype_promotion_follows_the_standard(client: gs.Client, pair: tuple[str, str], result: str) -> None:
    for one, other in {pair, pair[::-1]}:
        assert common_dtype(np.dtype(one), np.dtype(other)) == result
        promoted = gs.function(lambda x, y: namespace.where(x == y, x, y), client=client)
        assert promoted(np.ones(2, one), np.ones(2, other)).dtype == result


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_numbers_take_the_dtype_of_the_array(dtype: str) -> None:
    weak: list[Any] = [True] if dtype == "bool" else [True, 1] if "int" in dtype else [True, 1, 1.5, np.float64(1.5)]
    weak += [1j, np.complex128(1j)] if "complex" in dtype else []
    assert {common_dtype(np.dtype(dtype), number).name for number in weak} == {dtype}


def test_unsupported_dtypes_are_refused(client: gs.Client) -> None:
    with pytest.raises(gs.InputError, match="uint16"):
        common_dtype(np.dtype("uint8"), np.dtype("uint16"))
    with pytest.raises(gs.RecordingError, match=r"add \(test_array.py:\d+\).*300"):
        gs.function(lambda x: x + 300, client=client)(np.ones(2, np.uint8))
    with pytest.raises(gs.RecordingError, match=r"add \(test_array.py:\d+\).*-1"):
        gs.function(lambda x: x + -1, client=client)(np.ones(2, np.uint32))


def test_uint32_wraps_around_like_numpy(client: gs.Client) -> None:
    words = np.array([0, 1, 2**32 - 1], np.uint32)

    def mixed(x: Any) -> Any:
        return (x * 3 - 1) // 2 + namespace.asarray(words), namespace.astype(x, namespace.float64) / 2**32

    wrapped, fractions = gs.function(mixed, client=client)(words)
    assert wrapped.dtype == np.uint32
    assert wrapped.tolist() == ((words * 3 - 1) // 2 + words).tolist()
    assert fractions.tolist() == (words / 2**32).tolist()


def test_other_promotions_follow_numpy() -> None:
    for one, other in itertools.product(["bool", "int32", "uint32", "int64"], ["float32", "float64"]):
        assert common_dtype(np.dtype(one), np.dtype(other)) == np.result_type(one, other)
