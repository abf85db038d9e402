"""Complex numbers in recorded functions: values and gradients match NumPy, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs
from clients.python.tests.recording import complex_cases as cases
from clients.python.tests.recording.complex_cases import SINGLE, SQUARE, Z
from clients.python.tests.recording.namespace_cases import Case
from clients.python.tests.recording.test_gradients import NOT_COMPARED, parts
from clients.python.tests.recording.test_namespace import compare, names
from gradserve_client.recording import linalg, namespace
from gradserve_client.recording import namespace as xp
from gradserve_client.recording.arguments import NUMPY
from tests.sampling import together

#: directions in which arguments are moved by 1e-6: along the real and the imaginary axis
DIRECTIONS = (1.0, 1j)
#: functions without a gradient path: the sign of slogdet is a constant, and a rank is an integer
NO_PATH = {"slogdet", "matrix_rank"}


@together
@pytest.mark.slow
@pytest.mark.parametrize("case", cases.MAIN, ids=names(cases.MAIN))
def test_main_namespace_matches_numpy(client: gs.Client, case: Case) -> None:
    compare(client, case, namespace, np)


@pytest.mark.parametrize("case", cases.LINALG, ids=names(cases.LINALG))
def test_linalg_matches_numpy(client: gs.Client, case: Case) -> None:
    compare(client, case, linalg, np.linalg)


def total(library: Any, case: Case, la: Any, arrays: Any) -> Any:
    """A real number with a different derivative for each part of each element of the results."""
    results = [part for part in parts(case.call(la, *arrays)) if part.dtype in (np.float64, np.complex128)]
    weighted = [
        part * (library.reshape(library.arange(1.0, part.size + 1), part.shape)) * (1 + 0.5j) for part in results
    ]
    return sum(
        library.sum(library.sin(library.real(part) + 1)) + library.sum(library.cos(library.imag(part)))
        for part in weighted
    )


def differences(f: Callable[[Any], float], x: Any) -> Any:
    """∂f/∂Re x + i ∂f/∂Im x by central differences; only the first for a real x."""
    directions = DIRECTIONS if x.dtype.kind == "c" else DIRECTIONS[:1]
    moves = 1e-6 * np.eye(x.size).reshape(x.size, *x.shape)
    slopes = [
        sum(direction * (f(x + direction * move) - f(x - direction * move)) / 2e-6 for direction in directions)
        for move in moves
    ]
    return np.reshape(slopes, x.shape)


def gradient_cases(candidates: list[Case]) -> list[Any]:
    """The first case of each function that takes complex128."""
    chosen = {
        case.name: case
        for case in reversed(candidates)
        if case.arrays and case.arrays[0].dtype == np.complex128 and np.isfinite(case.arrays[0]).all()
    }
    return [pytest.param(case, id=name) for name, case in chosen.items() if name not in NOT_COMPARED]


def check_gradient(client: gs.Client, case: Case, la: Any, numpy_la: Any) -> None:
    x, rest = case.arrays[0], [*case.arrays[1:]]
    expected = differences(lambda x: float(total(np, case, numpy_la, [x, *rest])), x)
    gradient = gs.function(lambda x, rest: total(namespace, case, la, [x, *rest]), client=client).grad(x, rest)
    assert gradient.dtype == np.complex128
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case for case in gradient_cases(cases.MAIN) if case.id not in ("equal", "not_equal", "count_nonzero")]
)
def test_gradients_of_the_main_namespace(client: gs.Client, case: Case) -> None:
    check_gradient(client, case, namespace, np)


@pytest.mark.parametrize("case", [case for case in gradient_cases(cases.LINALG) if case.id not in NO_PATH])
def test_gradients_of_linalg(client: gs.Client, case: Case) -> None:
    check_gradient(client, case, linalg, np.linalg)


def test_gradient_is_the_direction_of_ascent(client: gs.Client) -> None:
    recorded = gs.function(lambda z: xp.sum(xp.square(xp.abs(z))), client=client)
    assert np.allclose(recorded.grad(Z), 2 * Z, rtol=1e-14)
    assert recorded.grad(SINGLE).dtype == np.complex64
    assert np.allclose(recorded.hvp(Z, vectors=1j * Z), 2j * Z, rtol=1e-14)
    values, gradients = recorded.batch(Z, wrt=0)
    assert np.allclose(values, (abs(Z) ** 2).sum(1))
    assert np.allclose(gradients, 2 * Z)
    assert recorded.check(Z).passed


def test_jacobian_products(client: gs.Client) -> None:
    recorded = gs.function(xp.exp, client=client)
    value, pulled = recorded.vjp(Z, cotangents=Z)
    assert np.allclose(value, np.exp(Z))
    assert np.allclose(pulled, Z * np.exp(Z).conj())
    assert np.allclose(recorded.jvp(Z, tangents=Z)[1], Z * np.exp(Z))
    with pytest.raises(gs.InputError, match=r"grad needs a function that returns one float.*complex128"):
        recorded.grad(Z)
    with pytest.raises(gs.GradserveError, match="make_complex"):
        recorded.jacobian(Z)


def test_numbers_and_constants_may_be_complex(client: gs.Client) -> None:
    recorded = gs.function(lambda z, c: (z * c + Z) / 2j, client=client)
    assert np.allclose(recorded(3 - 1j, 2j), ((3 - 1j) * 2j + Z) / 2j)
    assert np.allclose(gs.function(lambda z: z**2 + np.complex128(1j), client=client)(SINGLE), SINGLE**2 + 1j)
    assert gs.function(lambda z: z + np.complex128(1j), client=client)(SINGLE).dtype == np.complex64


def test_indexing_and_assignment(client: gs.Client) -> None:
    def change(z: Any) -> Any:
        z[0] = 2j
        z[1:, ::2] *= 1j
        z[xp.abs(z) > 2] = 0
        return z[:, 1:]

    assert np.allclose(gs.function(change, client=client)(Z), numpy_change())


def numpy_change() -> Any:
    z = Z.copy()
    z[0] = 2j
    z[1:, ::2] *= 1j
    z[np.abs(z) > 2] = 0
    return z[:, 1:]


def test_guarded_values_may_be_complex(client: gs.Client) -> None:
    def f(z: Any) -> Any:
        return z * complex(z) if z else z + 1

    guarded = gs.function(f, client=client, values="guarded")
    assert guarded(2 - 1j) == (2 - 1j) ** 2
    assert guarded(0j) == 1
    assert gs.function(lambda z: z * complex(xp.asarray(1j)), client=client, values="guarded")(2.0) == 2j
    with pytest.raises(gs.RecordingError, match=r"float \(test_complex.py:\d+\): complex128\[\] is complex"):
        gs.function(float, client=client, values="guarded")(2j)


def test_loops_carry_complex_numbers(client: gs.Client) -> None:
    def turned(z: Any) -> Any:
        return gs.scan(lambda carry, _: (carry * 1j, None), z, length=3)[0]

    def own(z: Any) -> Any:
        doubled = gs.call(lambda z: z * 2, z, derivative=lambda operands, result, cotangents: cotangents * 3)
        return xp.sum(xp.real(doubled))

    assert np.allclose(gs.function(turned, client=client)(Z), -1j * Z)
    assert np.allclose(gs.function(own, client=client).grad(Z), 3)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda z: z < 1, "less.*no order.*complex128.*real"),
        (lambda z: xp.maximum(z, 1), "maximum.*no order"),
        (xp.max, "max.*no order"),
        (xp.argmax, "argmax.*no order"),
        (xp.sort, "sort.*no order"),
        (xp.argsort, "argsort.*no order"),
        (lambda z: xp.clip(z, 0, 1), "clip.*no order"),
        (xp.floor, "floor.*no order"),
        (lambda z: z // 2, "floor_divide.*no order"),
        (lambda z: z % 2, "remainder.*no order"),
        (lambda z: xp.hypot(z, 1), "hypot.*no order"),
        (xp.trunc, "trunc.*no order"),
        (lambda z: xp.searchsorted(z[0], z), "searchsorted.*no order"),
        (xp.asin, r"asin.*log\(\)"),
        (xp.expm1, r"expm1.*exp\(x\) - 1"),
        (lambda z: z**z, r"pow.*exp\(y \* log\(x\)\)"),
        (lambda z: xp.astype(z, xp.float64), r"astype.*is complex, and float64 is not.*real\(\)"),
        (lambda z: xp.asarray(1j, dtype=xp.float64), "asarray.*float64 cannot hold complex numbers"),
        (lambda z: xp.arange(1j), "arange.*complex"),
    ],
)
def test_functions_without_complex_meaning_are_refused(client: gs.Client, call: Any, told: str) -> None:
    with pytest.raises(gs.RecordingError, match=told) as caught:
        gs.function(call, client=client)(Z)
    assert "(test_complex.py:" in str(caught.value)


def test_complex_elements_in_a_real_array_are_refused(client: gs.Client) -> None:
    def assign(x: Any) -> Any:
        x[0] = 1j
        return x

    with pytest.raises(gs.RecordingError, match="float64 cannot hold complex numbers"):
        gs.function(assign, client=client)(SQUARE.real)


@pytest.mark.parametrize(
    ("f", "given", "told"),
    [(xp.real, Z, "takes complex128"), (lambda x: x * 1j, Z.real, "returns complex128")],
)
def test_bridges_refuse_complex_arrays(client: gs.Client, f: Any, given: Any, told: str) -> None:
    with pytest.raises(gs.InputError, match=f"bridges do not support complex numbers, but this function {told}"):
        gs.function(f, client=client).map_for(NUMPY, (given,), {})
