"""Kernels of matrix products: accurate for all layouts and edges of tiles, with reproducible bits."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codegen.microkernels import product as products
from engine.codegen.microkernels import register_tile
from engine.codegen.microkernels.register_tile import TileShape, Vectors, tile_shape
from engine.codegen.native.machine_code import host_processor
from tests.engine.codegen.microkernels.products import (
    LIES,
    Case,
    assert_near,
    before_unreadable_page,
    computed,
    items,
    random_case,
    reference,
    with_layout,
)

pytest.importorskip("llvmlite")

FLOATS = ("float32", "float64")
#: extents around the ends of vectors and of tiles
EDGES = (1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65)
AVX2 = ("x86-64-v3", "")
extents = st.one_of(st.sampled_from(EDGES), st.integers(1, 70))
shapes = st.tuples(extents, extents, extents)
lies = st.tuples(st.sampled_from(LIES), st.sampled_from(LIES))
batches = st.sampled_from(
    [((), ()), ((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 1), (3,)), ((1, 2), (3, 1)), ((2, 3), (2, 3)), ((1,), (1,))]
)


def runs_avx2() -> bool:
    return "+avx2" in host_processor()[1].split(",")


def reversed_items(case: Case) -> list[int]:
    return list(reversed(range(items(case))))


@pytest.mark.slow
@given(dtype=st.sampled_from(FLOATS), shape=shapes, lie=lies, batch=batches, seed=st.integers(0, 99))
@settings(max_examples=60)
def test_products_are_accurate(dtype: str, shape: tuple[int, int, int], lie: tuple, batch: tuple, seed: int) -> None:  # type: ignore[type-arg]
    """Reversed items give the same bits."""
    case = random_case(dtype, shape, lie, batch, seed)
    actual = computed(case)
    assert_near(actual, case)
    assert computed(case, order=reversed_items(case)).tobytes() == actual.tobytes()


#: every second extent for each dtype and layout: neighbours alternate between float32 and float64
ENDS = [
    (dtype, lie, extent)
    for (i, dtype), (j, lie), (k, extent) in product(*map(enumerate, (FLOATS, LIES, EDGES)))
    if not (i + j + k) % 2
]


@pytest.mark.parametrize(("dtype", "lie", "extent"), ENDS)
def test_products_are_accurate_at_the_ends_of_vectors(dtype: str, lie: str, extent: int) -> None:
    for shape in ((extent, 5, 20), (3, extent, 20), (3, 5, extent)):
        case = random_case(dtype, shape, (lie, lie))  # type: ignore[arg-type]
        assert_near(computed(case), case)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("depth", [1, 16, 19])
def test_split_sums_give_the_same_bits(dtype: str, lie: str, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing in parts gives the bits of packing in one part."""
    case = random_case(dtype, (70, 57, 37), ("dense", lie))  # type: ignore[arg-type]
    whole = computed(case)
    monkeypatch.setattr(products, "DEPTH", depth)
    actual = computed(case)
    assert_near(actual, case)
    assert actual.tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("lie_a", "lie_b"), [("dense", "dense"), ("transposed", "apart"), ("apart", "transposed")])
def test_row_matches_the_same_row_of_a_matrix(dtype: str, lie_a: str, lie_b: str) -> None:
    case = random_case(dtype, (61, 40, 35), (lie_a, lie_b))  # type: ignore[arg-type]
    actual = computed(case)
    for row in (0, 29, 60):
        assert computed(Case(case.a[row : row + 1], case.b)).tobytes() == actual[row].tobytes()
    assert computed(Case(case.a, case.b[:, 33:])).tobytes() == actual[:, 33:].tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_matrix_matches_the_same_matrix_in_a_batch(dtype: str) -> None:
    case = random_case(dtype, (9, 12, 21), ("transposed", "apart"), ((4, 1), (3,)))
    actual = computed(case)
    for i, j in np.ndindex(case.batch):
        assert computed(Case(case.a[i, 0], case.b[j])).tobytes() == actual[i, j].tobytes()


@pytest.mark.parametrize("batch", [((), ()), ((3,), (3,))])
@pytest.mark.parametrize("lie", ["dense", "transposed", "strided"])
def test_threads_do_not_change_bits(batch: tuple, lie: str) -> None:  # type: ignore[type-arg]
    """A product that is large enough to be shared, with a workspace for each thread."""
    case = random_case("float32", (150, 90, 101), ("dense", lie), batch)  # type: ignore[arg-type]
    (phase,) = case.recipe().phases
    assert phase.work >= 2_000_000
    assert phase.items >= 3
    assert len({computed(case, threads).tobytes() for threads in (1, 2, 3)}) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="memory is walled off by a system call")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1, 5, 19), (3, 20, 37), (61, 17, 37), (61, 40, 64)])
@pytest.mark.parametrize("turned", [False, True])
def test_no_read_beyond_an_operand(dtype: str, shape: tuple[int, int, int], turned: bool) -> None:
    """Operands end at an unreadable page; a vector that reaches it would crash the test."""
    case = random_case(dtype, shape)
    a, b = (before_unreadable_page(x.T.copy()).T if turned else before_unreadable_page(x) for x in case)
    assert computed(Case(a, b)).tobytes() == computed(case).tobytes()


# ---------------------------------------------------------------- special numbers


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("beside", [np.nan, np.inf])
def test_numbers_beside_the_operands_do_not_leak(dtype: str, lie: str, beside: float) -> None:
    """Rows and columns within reach of a last vector have no effect."""
    ones = np.ones((5, 19), dtype), np.ones((19, 21), dtype)
    a, b = (with_layout(x, lie, beside) for x in ones)  # type: ignore[arg-type]
    assert (computed(Case(a, b)) == 19).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("lie", LIES)
def test_nan_and_infinity_propagate(dtype: str, lie: str) -> None:
    case = random_case(dtype, (33, 18, 37), (lie, lie))  # type: ignore[arg-type]
    a, b = case
    a[0, 3], a[5, 4], a[32, 17], b[0, 36], b[2, 0], b[17, 16] = np.nan, np.inf, -np.inf, np.nan, np.inf, -np.inf
    a[7, 2] = 0.0  # times an infinity
    expected = reference(case)
    special = ~np.isfinite(expected)
    assert special.any()
    actual = computed(case)
    np.testing.assert_array_equal(actual[special], expected[special].astype(dtype))
    assert np.isfinite(actual[~special]).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_sum_of_negative_zeros_is_positive_zero(dtype: str) -> None:
    """Start sums with +0, as NumPy does; adding −0 keeps it."""
    a, b = np.full((3, 2), -0.0, dtype), np.ones((2, 17), dtype)
    actual = computed(Case(a, b))
    assert (actual == 0).all()
    assert not np.signbit(actual).any()


def test_products_are_fused_multiply_adds() -> None:
    """(1 + ε)(1 − ε) − 1 = −ε², which is lost if the product is rounded separately."""
    eps = float(np.finfo("float32").eps)
    a, b = np.array([[-1, 1 + eps]], "float32"), np.array([[1], [1 - eps]], "float32")
    assert computed(Case(a, b)).item() == -(eps**2)


# ---------------------------------------------------------------- other machines


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("lie", ["dense", "transposed", "strided"])
@pytest.mark.parametrize("shape", [(1, 9, 40), (64, 33, 37), (13, 40, 7), (61, 20, 64)])
@pytest.mark.parametrize("there", [Vectors(32, 16), Vectors(16, 32)])
def test_shorter_vectors_give_the_same_bits(
    dtype: str, lie: str, shape: tuple[int, int, int], there: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not runs_avx2():
        pytest.skip("this processor has no AVX2")
    case = random_case(dtype, shape, ("dense", lie))  # type: ignore[arg-type]
    usual = computed(case)
    monkeypatch.setattr(register_tile, "vectors", lambda: there)
    assert computed(case, processor=AVX2).tobytes() == usual.tobytes()


@pytest.mark.parametrize("there", [Vectors(64, 32), Vectors(32, 16), Vectors(16, 32)])
@given(rows=st.integers(1, 2000), columns=st.integers(1, 2000), itemsize=st.sampled_from([4, 8]))
def test_tile_fits_the_registers(there: Vectors, rows: int, columns: int, itemsize: int) -> None:
    """A tile leaves room for the vectors of a step and a broadcast number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(register_tile, "vectors", lambda: there)
        p, v = tile_shape(rows, columns, there.nbytes // itemsize)
    assert 1 <= p <= rows
    assert v >= 1
    assert p * v + v + 1 <= there.registers - 1


def test_large_product_has_a_large_tile() -> None:
    shape = tile_shape(1024, 1024, register_tile.lanes_for(4))
    assert shape.rows * shape.vectors >= 0.7 * register_tile.vectors().registers
    assert tile_shape(1, 4, 16) == TileShape(1, 1)
