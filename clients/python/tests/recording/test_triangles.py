"""Triangular factors and systems, recorded under SciPy's names: SciPy's own are the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from gradserve_client.recording import linalg, namespace

SCIPY_NAMES = {"lu", "solve_triangular"}
RNG = np.random.default_rng(8)
Array = np.ndarray[Any, Any]


def drawn(*shape: int, dtype: str = "float64") -> Array:
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if dtype == "complex128" else x).astype(dtype)


@pytest.fixture
def scipy_linalg() -> Any:
    pytest.importorskip("scipy", minversion="1.17", reason="SciPy is not installed")
    return pytest.importorskip("scipy.linalg")


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 3, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("form", [{}, {"p_indices": True}, {"permute_l": True}], ids=str)
def test_lu_matches_scipy(
    client: gs.Client, scipy_linalg: Any, shape: tuple[int, ...], dtype: str, form: dict[str, bool]
) -> None:
    a = drawn(*shape, dtype=dtype)
    actual, expected = gs.function(lambda a: linalg.lu(a, **form), client=client)(a), scipy_linalg.lu(a, **form)
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.shape == theirs.shape
        assert (ours.dtype == theirs.dtype) or (ours.dtype, theirs.dtype) == (np.int64, np.int32)
        np.testing.assert_allclose(ours, theirs, 1e-12, 1e-13)


def test_lu_has_gradients(client: gs.Client) -> None:
    def loss(a: Any) -> Any:
        p, lower, upper = linalg.lu(a)
        return namespace.sum(namespace.sin(p @ lower)) + namespace.sum(upper**2)

    recorded = gs.function(loss, client=client)
    assert recorded.check(drawn(4, 4)).passed


@pytest.mark.parametrize("trans", [0, 1, 2, "N", "T", "C"])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("right", [(3,), (3, 2)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_solve_triangular_matches_scipy(
    client: gs.Client, scipy_linalg: Any, trans: Any, lower: bool, right: tuple[int, ...], dtype: str
) -> None:
    a, b = drawn(3, 3, dtype=dtype) + 4 * np.eye(3), drawn(*right, dtype=dtype)
    recorded = gs.function(lambda a, b: linalg.solve_triangular(a, b, trans=trans, lower=lower), client=client)
    expected = scipy_linalg.solve_triangular(a, b, trans=trans, lower=lower)
    actual = recorded(a, b)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(actual, expected, 1e-12)


def test_batches_of_triangular_systems_broadcast(client: gs.Client) -> None:
    a, b = np.tril(drawn(2, 1, 3, 3)) + 4 * np.eye(3), drawn(5, 3, 2)
    recorded = gs.function(lambda a, b: linalg.solve_triangular(a, b, lower=True), client=client)
    np.testing.assert_allclose(recorded(a, b), np.linalg.solve(a, b), 1e-12)
    assert (
        gs.function(lambda a: namespace.sum(linalg.solve_triangular(a, b, lower=True)), client=client).check(a).passed
    )


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda a: linalg.lu(a[0]), "lu.*two axes"),
        (lambda a: linalg.solve_triangular(a, a[:2]), "solve_triangular.*as many rows"),
        (lambda a: linalg.solve_triangular(a, a, trans=3), "solve_triangular.*not 3"),
        (lambda a: linalg.solve_triangular(a, a, unit_diagonal=True), "solve_triangular.*divide a and b"),
        (lambda a: linalg.solve_triangular(a[:2], a), "solve_triangular.*square"),
    ],
)
def test_refusals_name_function_and_line(client: gs.Client, call: Any, told: str) -> None:
    with pytest.raises(gs.RecordingError, match=told) as caught:
        gs.function(lambda a: call(a + 0), client=client)(drawn(3, 3))
    assert "(test_triangles.py:" in str(caught.value)
